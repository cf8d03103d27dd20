import type { Figures, Row, Target } from './row.ts'
import { median } from './statistics.ts'

/** Results of one row. */
export interface RowResult {
  readonly row: Row
  readonly figures: Figures
  readonly absent: readonly { readonly name: string; readonly absent: string }[]
  /** Competitors that failed, and the error. */
  readonly failed: readonly { readonly name: string; readonly message: string }[]
}

function format(value: number, row: Row): string {
  if (row.digits !== undefined) return value.toFixed(row.digits)
  // toPrecision(2) would write 99.6 as a power of ten.
  return value >= 99.5 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2)
}

function formatFigures(figures: readonly number[], row: Row): string {
  const text = format(median(figures), row)
  if (figures.length < 2) return text
  return `${text} (${format(Math.min(...figures), row)}–${format(Math.max(...figures), row)})`
}

function formatTarget(target: Target, figures: Figures): string {
  const isMet = target.isMet((name) => {
    const found = figures.get(name)
    return found === undefined || found.length === 0 ? undefined : median(found)
  })
  if (isMet === undefined) return `${target.text}: not compared`
  return `${target.text}: ${isMet ? 'met' : '**missed**'}`
}

/** A row in Markdown: title, competitors with median and range, targets. */
function renderLine({ row, figures, failed }: RowResult): string {
  const cells = [
    ...[...figures].map(([name, values]) => `${name} ${formatFigures(values, row)}`),
    ...failed.map(({ name, message }) => `${name}: failed (${message})`),
  ]
  const targets = row.targets.map((target) => formatTarget(target, figures))
  const columns = [row.title, row.unit, cells.join('<br>'), targets.join('<br>')]
  return `| ${columns.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
}

/** A row for the terminal. */
export function renderRow(result: RowResult): string {
  const { row, figures, absent, failed } = result
  const width = Math.max(...[...figures.keys()].map((name) => name.length), 10)
  return [
    `${row.title} [${row.unit}]`,
    ...[...figures].map(([name, values]) => `  ${name.padEnd(width)}  ${formatFigures(values, row)}`),
    ...failed.map(({ name, message }) => `  ${name.padEnd(width)}  failed: ${message}`),
    ...absent.map((each) => `  ${each.name.padEnd(width)}  skipped: ${each.absent}`),
    ...row.targets.map((target) => `  target ${formatTarget(target, figures)}`),
  ].join('\n')
}

const BEGIN = '<!-- figures -->'
const END = '<!-- /figures -->'

/** Replaces the figures between the markers of a page. Rows that were not measured are kept; all are in the given order. */
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
