"""The style of an exported page: light or dark as the browser is, no image, no font that is fetched. Data."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2126; --dim: #5d6673; --paper: #fff; --box: #f3f5f7; --line: #d5dae0;
  --red: #b3261e; --green: #1a7333; --yellow: #8a5a00; --blue: #1f5fbf; --magenta: #8b2fa8; --cyan: #00707a;
  --model: #4c7fd9; --tools: #3f9b5f; --person: #d08a1d; --pause: #b9bfc7; --cached: #9db8ea; --written: #b0569f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e6ea; --dim: #9aa4b1; --paper: #15181c; --box: #1f242a;
  --line: #363d46; --red: #ff8a80; --green: #7fd494; --yellow: #e9bd63; --blue: #8db8ff; --magenta: #dba0f0;
  --cyan: #6fd3dc; --pause: #5a626d; --cached: #3c5a92; } }
* { box-sizing: border-box; }
body { max-width: 62rem; margin: 0 auto; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
small, .note, .number, figcaption { color: var(--dim); font-size: .85rem; }
.note { margin: .25rem 0; }
pre, code, summary, p, h1, li, td, figcaption { unicode-bidi: isolate; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; }
pre { margin: .5rem 0; padding: .5rem .75rem; background: var(--box); white-space: pre-wrap; tab-size: 4; }
.person { border-left: .25rem solid var(--person); padding-left: .75rem; }
.model { border-left: .25rem solid var(--model); padding-left: .75rem; margin: .75rem 0; }
.thinking { color: var(--dim); }
details { border: 1px solid var(--line); border-radius: .3rem; margin: .4rem 0; padding: .25rem .6rem; }
summary { cursor: pointer; } .call summary > * { margin-right: .6rem; }
.good, .green { color: var(--green); } .bad, .red { color: var(--red); }
.yellow { color: var(--yellow); } .blue { color: var(--blue); } .magenta { color: var(--magenta); }
.cyan { color: var(--cyan); } .dim { color: var(--dim); } .bold { font-weight: bold; }
.reverse { background: color-mix(in srgb, currentColor 22%, transparent); }
img { max-width: 100%; height: auto; } figure { margin: .5rem 0; }
table { border-collapse: collapse; } td, th { padding: .15rem .5rem; text-align: left; vertical-align: top; }
.model td, .model th { border: 1px solid var(--line); }
.uses table { width: 100%; } .uses th { font-weight: normal; font-size: .85rem; }
.uses td:nth-child(3), .uses td:nth-child(5) { width: 36%; vertical-align: middle; }
.number { text-align: right; white-space: nowrap; }
svg { display: block; width: 100%; height: .7rem; background: var(--box); }
rect.model { fill: var(--model); } rect.tools { fill: var(--tools); } rect.person { fill: var(--person); }
rect.pause, rect.other { fill: var(--pause); } rect.cached { fill: var(--cached); } rect.read { fill: var(--model); }
rect.written { fill: var(--written); }
.key { margin-right: .8rem; white-space: nowrap; border: 0; padding: 0; }
.key::before { content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .3em;
  background: var(--pause); }
.key.model::before, .key.read::before { background: var(--model); } .key.tools::before { background: var(--tools); }
.key.person::before { background: var(--person); } .key.cached::before { background: var(--cached); }
.key.written::before { background: var(--written); }
"""
