import numpy as np
from rsd.report.statistics import RESAMPLES
from statsmodels.stats.multitest import multipletests

def holm(p): return multipletests(p, method="holm")[1].tolist()

def _means(samples, rng, drawn=None):
    names=sorted(samples); right,count=np.array([samples[q] for q in names]).T
    d = rng.integers(len(names), size=(RESAMPLES,len(names))) if drawn is None else drawn
    return (rng.binomial(count[d], (right/count)[d])/count[d]).mean(axis=1), d

def _mean(s): return float(np.mean([r/c for r,c in s.values()]))
def _pc(v):
    a,b=np.quantile(v,[.025,.975]); return float(a),float(b)
def average(by):
    rng=np.random.default_rng(0)
    return float(np.mean([_mean(s) for s in by.values()])), _pc(np.mean([_means(s,rng)[0] for s in by.values()],axis=0))
def average_difference(pairs):
    rng=np.random.default_rng(0); v=[]
    for a,b in pairs.values():
        common=a.keys()&b.keys(); a={k:a[k] for k in common}; b={k:b[k] for k in common}
        m,d=_means(a,rng); v.append(m-_means(b,rng,d)[0])
    return float(np.mean([_mean(a)-_mean(b) for a,b in pairs.values()])), _pc(np.mean(v,axis=0))
