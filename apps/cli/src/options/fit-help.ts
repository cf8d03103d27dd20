/** Narrower terminals get lines of this width all the same. */
const MIN_COLUMNS = 60
/** Where descriptions begin; what is less far to the right is a text of its own. */
const MIN_HANG = 15
/** A name and its description. */
const ROW = /^( {2,}\S(?:.*?\S)?) {2,}(?=\S)/

/** Lines that belong together. */
interface Block {
  /** What the first line begins with, up to its text. */
  readonly head: string
  /** Where the other lines begin. */
  readonly hang: number
  readonly isRow: boolean
  text: string
}

function readBlock(line: string): Block {
  const [head] = ROW.exec(line) ?? []
  if (head !== undefined) return { head, hang: head.length, isRow: true, text: line.slice(head.length) }
  const [start = ''] = /^(Usage: | *)/.exec(line) ?? []
  const isRow = start.startsWith('Usage') || /^ *-/.test(line)
  return { head: start, hang: start.length, isRow, text: line.slice(start.length) }
}

function continues(block: Block, { head, hang, isRow }: Block): boolean {
  if (isRow || block.text === '' || head.trim() !== '') return false
  return block.isRow ? hang >= MIN_HANG && hang === block.hang : hang === block.hang
}

function wrap({ head, hang, text }: Block, columns: number): string {
  const lines: string[] = []
  let line = head
  let isEmpty = true
  for (const word of text.split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = ' '.repeat(hang)
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line].join('\n')
}

/** A help text for a terminal: broken between words where it is too wide, and as it is where it fits. */
export function fitHelp(help: string, columns: number | undefined): string {
  const lines = help.split('\n')
  if (columns === undefined || lines.every((line) => line.length <= columns)) return help
  const blocks: Block[] = []
  for (const block of lines.map(readBlock)) {
    const last = blocks.at(-1)
    if (last !== undefined && block.text !== '' && continues(last, block)) last.text += ` ${block.text}`
    else blocks.push(block)
  }
  return blocks.map((block) => wrap(block, Math.max(columns, MIN_COLUMNS))).join('\n')
}
