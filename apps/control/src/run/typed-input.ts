/** Longest line that is sent to the agent. */
const MAX_LINE_CHARS = 16 * 1024

/** What typed characters mean. */
export interface TypedInput {
  /** What the terminal shows of them. */
  readonly echo: string
  /** Complete lines. */
  readonly lines: readonly string[]
  /** The line that is being typed. */
  readonly rest: string
  /** Ctrl-C was typed. */
  readonly isInterrupt: boolean
}

/** Edits the line that is being typed: backspace, Ctrl-U, Ctrl-C and Enter. */
export function typeInto(line: string, data: string): TypedInput {
  let rest = line
  let echo = ''
  let isInterrupt = false
  const lines: string[] = []
  for (const character of data) {
    if (character === '\r' || character === '\n') {
      if (rest.trim() !== '') lines.push(rest)
      rest = ''
      echo += '\r\n'
    } else if (character === '\u0003') {
      isInterrupt = true
      rest = ''
      echo += '^C\r\n'
    } else if (character === '\u007f' || character === '\b') {
      if (rest !== '') echo += '\b \b'
      rest = Array.from(rest).slice(0, -1).join('')
    } else if (character === '\u0015') {
      echo += '\b \b'.repeat(Array.from(rest).length)
      rest = ''
    } else if (character >= ' ' && rest.length < MAX_LINE_CHARS) {
      rest += character
      echo += character
    }
  }
  return { echo, lines, rest, isInterrupt }
}
