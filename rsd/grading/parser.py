r"""Read tokens as one mathematical expression, LaTeX and plain text alike::

    parse_expression(tokenize(r"\frac{1}{2}x^2"))  # Apply("*", (…, Apply("^", (Symbol("x"), Number(2)))))

Juxtaposition multiplies, with the precedence of a product; `3\frac{1}{2}` is three and a half. Nothing is evaluated.
"""

from collections.abc import Sequence
from fractions import Fraction

from rsd.grading.expressions import INFINITY, Apply, Expression, Number, Symbol, negated
from rsd.grading.tokens import Token, UnreadableError

MAX_DEPTH = 60
MAX_DECIMAL_EXPONENT = 5000
_END = Token("close", "")
_CLOSES = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "floor": "floor", "ceil": "ceil", "abs": "abs"}
TRIGONOMETRIC = {"sin", "cos", "tan", "sec", "csc", "cot"}
SUMMAND, FACTOR = ("number", "symbol", "function", "command"), ("(", "[", "{", "floor", "ceil", "abs")


def parse_expression(tokens: Sequence[Token]) -> Expression:
    """The expression that all of `tokens` make up. Raises UnreadableError when they make none."""
    parser = _Parser(tokens)
    expression = parser.sum()
    if parser.next is not _END:
        raise UnreadableError(f"{parser.next.text!r} where an expression ends")
    return expression


def number(text: str) -> Number:
    """The number written as `text`: an integer, a decimal, e-notation, or a repeating decimal that ends in ``…``."""
    if text.endswith("…"):
        return Number(Fraction(text[:-1]).limit_denominator(10**20))
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DECIMAL_EXPONENT:
        raise UnreadableError("too large an exponent")
    digits = len(mantissa.replace(".", "").lstrip("0")) if "." in mantissa else 0
    return Number(Fraction(text if text[0] != "." else f"0{text}"), digits)


def _mixed(whole: str, numerator: str, denominator: str) -> bool:
    """Whether three numbers are those of a mixed number."""
    return all(part.isdigit() for part in (whole, numerator, denominator)) and 0 < int(numerator) < int(denominator)


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.position, self.depth, self.bars = tokens, 0, 0, 0

    @property
    def next(self) -> Token:
        return self.peek(0)

    def peek(self, offset: int) -> Token:
        position = self.position + offset
        return self.tokens[position] if position < len(self.tokens) else _END

    def take(self) -> Token:
        token = self.next
        self.position += 1
        return token

    def takes(self, text: str, kind: str = "operator") -> bool:
        if (self.next.kind, self.next.text) != (kind, text):
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        if not (self.takes(text, "close") or self.takes(text)):
            raise UnreadableError(f"{text!r} is missing")

    def sum(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deep")
        terms = [self.term()]
        while self.next.kind == "operator" and self.next.text in "+-":
            minus = self.take().text == "-"
            term = self.term()
            terms.append(negated(term) if minus else term)
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Apply("+", tuple(terms))

    def term(self) -> Expression:
        value = self.unary()
        while True:
            if self.takes("*"):
                value = Apply("*", (value, self.unary()))
            elif self.takes("/"):
                value = Apply("/", (value, self.unary()))
            elif self.starts_factor():
                if self.next.kind == "number" and self.peek(-1).kind == "number":
                    raise UnreadableError("two numbers side by side")
                value = Apply("*", (value, self.power()))
            else:
                return value

    def starts_factor(self) -> bool:
        token = self.next
        return (
            token.kind in SUMMAND
            or (token.kind == "open" and token.text in FACTOR)
            or (token.kind == "operator" and token.text == "|" and not self.bars)
        )

    def unary(self) -> Expression:
        sign = 1
        while self.next.kind == "operator" and self.next.text in ("+", "-"):
            sign *= -1 if self.take().text == "-" else 1
        value = self.power()
        return negated(value) if sign < 0 else value

    def power(self) -> Expression:
        return self.raised(self.postfix(self.atom()))

    def raised(self, base: Expression) -> Expression:
        if not self.takes("^"):
            return base
        if self.next.kind == "operator" and self.next.text in ("+", "-"):
            exponent = self.guarded_unary()
        else:
            exponent = self.raised(self.postfix(self.atom()))
        return self.postfix(Apply("^", (base, exponent)))

    def guarded_unary(self) -> Expression:
        sign = -1 if self.take().text == "-" else 1
        value = self.power()
        return negated(value) if sign < 0 else value

    def postfix(self, value: Expression) -> Expression:
        while True:
            if self.takes("!"):
                value = Apply("!", (value,))
            elif self.takes("%"):
                value = Apply("/", (value, Number(Fraction(100))))
            elif self.takes("°"):
                value = Apply("*", (value, Apply("/", (Symbol("pi"), Number(Fraction(180))))))
            else:
                return value

    def atom(self) -> Expression:  # noqa: PLR0912 - one case per kind of token
        token = self.take()
        match token.kind, token.text:
            case "number", text:
                return self.number(text)
            case "symbol", "infinity":
                return INFINITY
            case "symbol", "emptyset":
                raise UnreadableError("the empty set in an expression")
            case "symbol", name:
                return Symbol(name + self.subscript() + self.primes())
            case "function", name:
                return self.function(name)
            case "command", "frac":
                numerator, denominator = self.argument(True), self.argument(True)
                return Apply("/", (numerator, denominator))
            case "command", "sqrt":
                degree: Expression = Number(Fraction(2))
                if self.takes("[", "open"):
                    degree = self.sum()
                    self.expect("]")
                return Apply("root", (self.argument(), degree))
            case "command", "cbrt":
                return Apply("root", (self.argument(), Number(Fraction(3))))
            case "command", "binom":
                return Apply("binomial", (self.argument(), self.argument()))
            case "command", "abs":
                return Apply("abs", (self.argument(),))
            case "command", "decorated":
                return self.decorated()
            case "open", ("floor" | "ceil" | "abs") as name:
                return Apply(name, (self.inside(name),))
            case "open", ("(" | "[" | "{") as bracket:
                return self.inside(bracket)
            case "operator", "|":
                self.bars += 1
                value = self.sum()
                self.expect("|")
                self.bars -= 1
                return Apply("abs", (value,))
        raise UnreadableError(f"{token.text!r} where a value should stand")

    def inside(self, bracket: str) -> Expression:
        bars, self.bars = self.bars, 0
        value = self.sum()
        self.expect(_CLOSES[bracket])
        self.bars = bars
        return value

    def number(self, text: str) -> Expression:
        whole = number(text)
        part = [self.peek(i).text for i in range(7)]
        kinds = [self.peek(i).kind for i in range(3)]
        if kinds[0] == "command" and part[:2] == ["frac", "{"] and part[3:5] == ["}", "{"] and part[6] == "}":
            numerator, denominator, length = part[2], part[5], 7
        elif kinds[0] == "command" and part[0] == "frac" and len(part[1]) == 2 and part[1].isdigit():
            numerator, denominator, length = part[1][0], part[1][1], 2
        elif kinds == ["number", "operator", "number"] and part[1] == "/":
            numerator, denominator, length = part[0], part[2], 3
        else:
            return whole
        if not _mixed(text, numerator, denominator):
            return whole
        self.position += length
        return Number(whole.value + Fraction(int(numerator), int(denominator)))

    def argument(self, single_digit: bool = False) -> Expression:
        r"""What a command applies to: a group, or one token (one digit of a number, in ``\frac12``)."""
        token = self.next
        if token.kind == "number" and single_digit and len(token.text) > 1 and token.text.isdigit():
            self.position += 1
            rest = Token("number", token.text[1:])
            self.tokens = [*self.tokens[: self.position], rest, *self.tokens[self.position :]]
            return number(token.text[0])
        if token.kind == "operator" and token.text == "-":
            self.position += 1
            return negated(self.atom())
        return self.atom()

    def subscript(self) -> str:
        if not self.takes("_"):
            return ""
        if not self.takes("{", "open"):
            return f"_{self.take().text}"
        texts, depth = [], 1
        while depth:
            token = self.take()
            if token is _END:
                raise UnreadableError("an open subscript")
            depth += (token.text == "{") - (token.text == "}")
            texts.append(token.text)
        return "_" + "".join(texts[:-1])

    def primes(self) -> str:
        primes = ""
        while self.takes("'"):
            primes += "'"
        return primes

    def decorated(self) -> Expression:
        """A name under a bar, hat or arrow; the ornament itself carries no meaning in an answer."""
        if not self.takes("{", "open"):
            return Symbol(self.take().text)
        names: list[str] = []
        while not self.takes("}", "close"):
            token = self.take()
            if token.kind not in ("symbol", "word", "number"):
                raise UnreadableError("an ornament over more than a name")
            names.append(token.text + self.subscript())
        return Symbol(names[0]) if len(names) == 1 else Apply("*", tuple(map(Symbol, names)))

    def function(self, name: str) -> Expression:
        base: Expression | None = None
        exponent: Expression | None = None
        if self.takes("_"):
            base = self.argument()
        if self.takes("^"):
            exponent = self.argument()
        if name in TRIGONOMETRIC and exponent in (Number(Fraction(-1)), negated(Number(Fraction(1)))):
            name, exponent = f"a{name}", None
        if self.next.kind == "open" and self.next.text in ("(", "[", "{"):
            value = self.postfix(self.atom())
        else:
            value = self.operand()
        if name == "lg":
            base = Number(Fraction(10))
        result = Apply("log" if name == "lg" else name, (value,) if base is None else (value, base))
        return result if exponent is None else Apply("^", (result, exponent))

    def operand(self) -> Expression:
        r"""What a function without parentheses applies to: ``\sin 2x`` takes both factors, ``\sin x \cos x`` one."""
        value = self.unary()
        while self.starts_factor() and self.next.kind != "function" and self.next.text not in ("(", "["):
            value = Apply("*", (value, self.power()))
        return value
