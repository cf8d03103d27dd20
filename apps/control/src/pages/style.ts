/** The look of every page. Colours come from the browser's own light and dark. */
export const PAGE_CSS = `:root{color-scheme:light dark;--line:#8884;--edge:#808080;--soft:#8881;--strong:#1d5fd1}
@media (prefers-color-scheme:dark){:root{--strong:#2f6fe0}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:60rem;padding:0 1rem}
[hidden]{display:none!important}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem 1rem;margin-bottom:1.5rem}
h1{font-size:1.6rem;margin:0;flex:1}h1+p{margin-top:1rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--line)}
code{background:var(--soft);padding:.1rem .3rem;border-radius:.2rem;overflow-wrap:anywhere}
.button,button{display:inline-block;font:inherit;line-height:1.3;padding:.5rem 1rem;border:1px solid var(--edge);border-radius:.4rem;background:var(--soft);color:inherit;text-decoration:none;cursor:pointer}
.button:hover,button:hover{border-color:currentcolor}
.main{background:var(--strong);border-color:var(--strong);color:#fff}
input{font:inherit;padding:.5rem .6rem;border:1px solid var(--edge);border-radius:.4rem;background:transparent;color:inherit;min-width:0}
:focus-visible{outline:2px solid var(--strong);outline-offset:2px}
.narrow{max-width:24rem;margin:0 auto}.narrow h1{margin-bottom:1rem}
.stack{display:flex;flex-direction:column;gap:.6rem}.stack .button,.stack button{text-align:center;width:100%}.stack label{display:flex;flex-direction:column;gap:.2rem}
`
