#include "report/style.hpp"

namespace gpunn::reports {

// Lines in Okabe and Ito's colours, lighter ones on dark. Text has a contrast of at least 4.5 : 1 on its ground.
std::string_view style_sheet() {
  return R"css(
:root {
  color-scheme: light dark;
  --ground: #ffffff; --card: #f4f6f8; --ink: #1b1f24; --quiet: #57606a; --rule: #d3d9df; --link: #0550ae;
  --grid: #e1e5e9; --frame: #6e7781; --right: 0, 114, 178; --wrong: 213, 94, 0;
  --line-1: #0072b2; --line-2: #d55e00; --line-3: #008f68; --line-4: #b0588f;
  --line-5: #8c6d1f; --line-6: #2f8fc4; --line-7: #000000; --line-8: #a65e00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1317; --card: #181d23; --ink: #e6eaee; --quiet: #a3adb8; --rule: #36404a; --link: #79b8ff;
    --grid: #2a323a; --frame: #8b96a1; --right: 40, 130, 190; --wrong: 190, 100, 10;
    --line-1: #56b4e9; --line-2: #e69f00; --line-3: #2bc79a; --line-4: #e39ac4;
    --line-5: #d8c36a; --line-6: #8fd0f5; --line-7: #ffffff; --line-8: #f0b35a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
p { margin: .5rem 0; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .75rem 0; }
.quiet, figcaption { color: var(--quiet); font-size: .9rem; }
.notice { padding: .5rem .75rem; border-left: 4px solid rgb(var(--wrong)); background: var(--card); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.tiles div { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.tiles dt { color: var(--quiet); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0; font-size: .95rem; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
.charts svg { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
caption { text-align: left; color: var(--quiet); font-size: .9rem; padding-bottom: .35rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
thead th { color: var(--quiet); font-weight: 600; }
thead th::first-letter { text-transform: uppercase; }
th[scope=row], .words td, .words th { text-align: left; }
.words td, .words th { white-space: normal; }
.words .count { text-align: right; white-space: nowrap; }
th[scope=row] { font-weight: 500; }
tfoot th, tfoot td { font-weight: 700; border-bottom: 0; }
.beside { display: flex; flex-wrap: wrap; gap: 1.5rem 3rem; align-items: flex-start; margin: .75rem 0; }
.beside > * { min-width: 0; max-width: 100%; }
.matrix { font-size: .85rem; }
.matrix th, .matrix td { padding: .25rem .3rem; min-width: 1.9rem; border: 1px solid var(--rule); }
.matrix .right { background: rgba(var(--right), var(--share)); }
.matrix .wrong { background: rgba(var(--wrong), var(--share)); }
.matrix .none { color: var(--quiet); }
figure { margin: 0; }
figcaption { margin-top: .4rem; }
.filters img { image-rendering: pixelated; max-width: 100%; height: auto; display: block; }
.heat img { image-rendering: pixelated; width: min(100%, 40rem); height: auto; border: 1px solid var(--rule); }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 1rem;
  list-style: none; padding: 0; margin: 1rem 0; }
.mistakes figure { background: var(--card); border-radius: .5rem; padding: .6rem; height: 100%; }
.mistakes img { width: 100%; height: auto; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated; background: #000; }
.mistakes strong { color: var(--ink); }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--link); }
pre { overflow-x: auto; background: var(--card); padding: .75rem; border-radius: .5rem; font-size: .85rem;
  overflow-wrap: normal; }
@media (max-width: 30rem) {
  .mistakes { grid-template-columns: 1fr 1fr; }
  .facts { grid-template-columns: 1fr; }
  .facts dd { margin-bottom: .4rem; }
  th, td { padding: .25rem .4rem; }
  .matrix th, .matrix td { padding: .2rem .15rem; min-width: 1.6rem; font-size: .75rem; }
}
@media print { details > * { display: block; } body { font-size: 11pt; } }
)css";
}

}  // namespace gpunn::reports
