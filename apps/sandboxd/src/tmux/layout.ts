/** A cell of a window's layout: a pane, or a row or column of cells. Sizes and positions are in characters. */
export type LayoutCell = CellSize &
  (
    | { readonly kind: 'pane'; readonly pane: string }
    | { readonly kind: 'row' | 'column'; readonly cells: readonly LayoutCell[] }
  )

interface CellSize {
  readonly cols: number
  readonly rows: number
  readonly left: number
  readonly top: number
}

/** Deeper layouts do not fit into the largest window. */
const MAX_DEPTH = 64

/** Parses tmux's layout string, such as `f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1}`; undefined when it is malformed. */
export function parseLayout(text: string): LayoutCell | undefined {
  const [checksum, body] = [text.slice(0, 4), text.slice(5)]
  if (text[4] !== ',' || checksum !== checksumOf(body)) return undefined
  const reader = new LayoutReader(body)
  const cell = reader.cell(0)
  return cell !== undefined && reader.isAtEnd ? cell : undefined
}

/** Writes a layout as tmux does. */
export function formatLayout(cell: LayoutCell): string {
  const body = formatCell(cell)
  return `${checksumOf(body)},${body}`
}

function formatCell(cell: LayoutCell): string {
  const size = `${cell.cols}x${cell.rows},${cell.left},${cell.top}`
  if (cell.kind === 'pane') return `${size},${cell.pane.slice(1)}`
  const [open, close] = cell.kind === 'row' ? '{}' : '[]'
  return `${size}${open}${cell.cells.map(formatCell).join(',')}${close}`
}

type PaneCell = Extract<LayoutCell, { kind: 'pane' }>

/** The panes of a layout, in tmux's order. */
export function panesOf(cell: LayoutCell): readonly PaneCell[] {
  return cell.kind === 'pane' ? [cell] : cell.cells.flatMap(panesOf)
}

const DIRECTIONS = ['left', 'right', 'up', 'down'] as const
export type Direction = (typeof DIRECTIONS)[number]

export function isDirection(text: string): text is Direction {
  return DIRECTIONS.some((direction) => direction === text)
}

/** The pane that touches `from` on that side; the first one when there are several. */
export function findNeighbor(layout: LayoutCell, from: string, direction: Direction): string | undefined {
  const cells = panesOf(layout)
  const own = cells.find(({ pane }) => pane === from)
  return own && cells.find((cell) => isAdjacent(own, cell, direction))?.pane
}

/** One line of characters separates panes. */
function isAdjacent(own: PaneCell, other: PaneCell, direction: Direction): boolean {
  const overlaps =
    direction === 'left' || direction === 'right'
      ? own.top < other.top + other.rows && other.top < own.top + own.rows
      : own.left < other.left + other.cols && other.left < own.left + own.cols
  switch (direction) {
    case 'left':
      return overlaps && other.left + other.cols + 1 === own.left
    case 'right':
      return overlaps && own.left + own.cols + 1 === other.left
    case 'up':
      return overlaps && other.top + other.rows + 1 === own.top
    case 'down':
      return overlaps && own.top + own.rows + 1 === other.top
  }
}

/** tmux's checksum: 16 bits, rotated right before each character is added. */
function checksumOf(body: string): string {
  let sum = 0
  for (let at = 0; at < body.length; at += 1) {
    sum = (sum >> 1) + ((sum & 1) << 15)
    sum = (sum + body.charCodeAt(at)) & 0xffff
  }
  return sum.toString(16).padStart(4, '0')
}

class LayoutReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length
  }

  cell(depth: number): LayoutCell | undefined {
    const [, cols, rows, left, top] = this.#match(/(\d{1,5})x(\d{1,5}),(\d{1,5}),(\d{1,5})/y) ?? []
    if (depth > MAX_DEPTH || top === undefined) return undefined
    const size = { cols: Number(cols), rows: Number(rows), left: Number(left), top: Number(top) }
    const id = this.#match(/,(\d+)(?=[,\]}]|$)/y)?.[1]
    if (id !== undefined) return { kind: 'pane', pane: `%${id}`, ...size }
    const kind = this.#takes('{') ? 'row' : this.#takes('[') ? 'column' : undefined
    if (kind === undefined) return undefined
    const cells: LayoutCell[] = []
    do {
      const next = this.cell(depth + 1)
      if (next === undefined) return undefined
      cells.push(next)
    } while (this.#takes(','))
    return this.#takes(kind === 'row' ? '}' : ']') ? { kind, cells, ...size } : undefined
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match !== null) this.#at = pattern.lastIndex
    return match
  }

  #takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }
}
