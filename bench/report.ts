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

/** One line of Markdown per row: title, every contestant with median and range, targets. */
export function renderTable(results: readonly RowResult[]): string {
  const lines = results.map((result) => {
    const { row, figures } = result
    const cells = [
      ...[...figures].map(([name, values]) => `${name} ${formatFigures(values, row)}`),
      ...result.failed.map(({ name, message }) => `${name}: failed (${message})`),
    ]
    const targets = row.targets.map((target) => judge(target, figures))
    return `| ${row.title} | ${row.unit} | ${cells.join('<br>')} | ${targets.join('<br>')} |`
  })
  return ['| what | unit | median (range) | target |', '|---|---|---|---|', ...lines].join('\n')
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

/** Puts machine and table between the markers of a page. */
export function insertFigures(page: string, text: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`Cannot write figures: no ${BEGIN} … ${END} in the page`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${text}\n\n${page.slice(to)}`
}
