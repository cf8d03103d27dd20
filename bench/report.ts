import type { Figures, Row, Target } from './row.ts'
import { median } from './statistics.ts'

/** What one row came to. */
export interface RowResult {
  readonly row: Row
  readonly figures: Figures
  readonly absent: readonly { readonly name: string; readonly absent: string }[]
  /** Contestants that broke, and how. */
  readonly failed: readonly { readonly name: string; readonly message: string }[]
}

function format(value: number, row: Row): string {
  if (row.digits !== undefined) return value.toFixed(row.digits)
  // Two digits of 99.6 would be written as a power of ten.
  return value >= 99.5 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2)
}

function formatFigures(figures: readonly number[], row: Row): string {
  const text = format(median(figures), row)
  if (figures.length < 2) return text
  return `${text} (${format(Math.min(...figures), row)}–${format(Math.max(...figures), row)})`
}

function judge(target: Target, figures: Figures): string {
  const verdict = target.isMet((name) => {
    const found = figures.get(name)
    return found === undefined || found.length === 0 ? undefined : median(found)
  })
  if (verdict === undefined) return `${target.text}: not compared`
  return `${target.text}: ${verdict ? 'met' : '**missed**'}`
}

/** A row as a line of Markdown: title, every contestant with median and range, targets. */
function renderLine({ row, figures, failed }: RowResult): string {
  const cells = [
    ...[...figures].map(([name, values]) => `${name} ${formatFigures(values, row)}`),
    ...failed.map(({ name, message }) => `${name}: failed (${message})`),
  ]
  const targets = row.targets.map((target) => judge(target, figures))
  return `| ${row.title} | ${row.unit} | ${cells.join('<br>')} | ${targets.join('<br>')} |`
}

/** A row for a terminal, as soon as it is there. */
export function renderRow(result: RowResult): string {
  const { row, figures, absent, failed } = result
  const width = Math.max(...[...figures.keys()].map((name) => name.length), 10)
  return [
    `${row.title} [${row.unit}]`,
    ...[...figures].map(([name, values]) => `  ${name.padEnd(width)}  ${formatFigures(values, row)}`),
    ...failed.map(({ name, message }) => `  ${name.padEnd(width)}  failed: ${message}`),
    ...absent.map((each) => `  ${each.name.padEnd(width)}  skipped: ${each.absent}`),
    ...row.targets.map((target) => `  target ${judge(target, figures)}`),
  ].join('\n')
}

const BEGIN = '<!-- figures -->'
const END = '<!-- /figures -->'

/** Puts the head and the rows between the markers of a page. Rows that were not measured stay as they are; all are in the order given. */
export function insertFigures(
  page: string,
  head: string,
  results: readonly RowResult[],
  order: readonly Row[],
): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`Cannot write figures: no ${BEGIN} … ${END} in the page`)
  const before = page.slice(from, to).split('\n')
  const measured = new Map(results.map((result) => [result.row.title, renderLine(result)]))
  const lines = order.flatMap(({ title }) => {
    const line = measured.get(title) ?? before.find((each) => each.startsWith(`| ${title} |`))
    return line === undefined ? [] : [line]
  })
  const table = ['| what | unit | median (range) | target |', '|---|---|---|---|', ...lines].join('\n')
  return `${page.slice(0, from + BEGIN.length)}\n\n${head}\n\n${table}\n\n${page.slice(to)}`
}
