const LETTERS = { up: 'A', down: 'B', right: 'C', left: 'D' } as const

/** A key with an arrow. */
export type Arrow = keyof typeof LETTERS

/** What it sends; full-screen programs ask for another form. */
export function arrowText(arrow: Arrow, isApplication: boolean): string {
  return `\u{1b}${isApplication ? 'O' : '['}${LETTERS[arrow]}`
}
