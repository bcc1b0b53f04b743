#include "report/style.hpp"

#include "chart/palette.hpp"

namespace gpunn::reports {

namespace {

// Besides the colours of charts. Text has a contrast of at least 4.5 : 1 on its ground.
constexpr std::string_view kLightPage =
    " --card: #f4f6f8; --rule: #d3d9df; --link: #0550ae; --right: 0, 114, 178; --wrong: 213, 94, 0; ";
constexpr std::string_view kDarkPage =
    " --card: #181d23; --rule: #36404a; --link: #79b8ff; --right: 40, 130, 190; --wrong: 190, 100, 10; ";

constexpr std::string_view kPageRules = R"css(
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
thead th:first-child { text-align: left; }
th[scope=row] { font-weight: 500; white-space: normal; overflow-wrap: break-word; max-width: 24rem; }
#epochs th[scope=row] { white-space: nowrap; }
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
.crops { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .75rem; margin: .5rem 0 1.5rem; }
.crops img { width: 100%; height: auto; image-rendering: pixelated; display: block; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--link); }
pre { overflow-x: auto; background: var(--card); padding: .75rem; border-radius: .5rem; font-size: .85rem;
  overflow-wrap: normal; }
@media (max-width: 30rem) {
  .mistakes { grid-template-columns: 1fr 1fr; }
  .facts { grid-template-columns: 1fr; }
  .facts dd { margin-bottom: .4rem; }
  table { font-size: .85rem; }
  th, td { padding: .25rem .3rem; }
  th[scope=row] { max-width: 5.5rem; }
  .matrix th, .matrix td { padding: .2rem .15rem; min-width: 1.6rem; font-size: .75rem; }
  .matrix th[scope=row] { max-width: 6rem; }
}
@media print { details > * { display: block; } body { font-size: 11pt; } }
)css";

}  // namespace

std::string style_sheet() {
  const auto variables = [](const chart::Palette& palette, std::string_view besides) {
    return ":root { " + chart::css_variables(palette) + std::string(besides) + "}";
  };
  return ":root { color-scheme: light dark; }\n" + variables(chart::kOnLight, kLightPage) +
         "\n@media (prefers-color-scheme: dark) { " + variables(chart::kOnDark, kDarkPage) + " }" +
         std::string(kPageRules);
}

}  // namespace gpunn::reports
