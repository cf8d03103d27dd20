import type { Terminal } from '@xterm/xterm'

const LETTERS = { up: 'A', down: 'B', right: 'C', left: 'D' } as const

/** A key with an arrow. */
export type Arrow = keyof typeof LETTERS

/** What it sends; full-screen programs ask for another form. */
export function arrowText(arrow: Arrow, isApplication: boolean): string {
  return `\u{1b}${isApplication ? 'O' : '['}${LETTERS[arrow]}`
}

/**
 * Tells xterm.js that keys come up when the keyboard goes elsewhere, as those of a shortcut do. It would think of one as down for ever,
 * and until the next key drop text that comes without any: from a phone, by voice, from a list of signs.
 */
export function releaseKeysOnBlur({ textarea }: Terminal): void {
  textarea?.addEventListener('blur', () => {
    const up = new KeyboardEvent('keyup', { key: 'Shift' })
    // By this number it knows a key that types nothing, for which it does not ask for the keyboard again.
    Object.defineProperty(up, 'keyCode', { value: 16 })
    textarea.dispatchEvent(up)
  })
}
