import type { Terminal } from '@xterm/xterm'

const LETTERS = { up: 'A', down: 'B', right: 'C', left: 'D' } as const

/** An arrow key. */
export type Arrow = keyof typeof LETTERS

/** The sequence that an arrow key sends, by cursor key mode. */
export function arrowText(arrow: Arrow, isApplication: boolean): string {
  return `\u{1b}${isApplication ? 'O' : '['}${LETTERS[arrow]}`
}

/**
 * Sends xterm.js a keyup when the terminal loses the focus, as after a shortcut. It would otherwise consider a key
 * held down and ignore text without key events, such as from phones or speech input, until the next key.
 */
export function releaseKeysOnBlur({ textarea }: Terminal): void {
  textarea?.addEventListener('blur', () => {
    const up = new KeyboardEvent('keyup', { key: 'Shift' })
    // The key code of Shift, which xterm.js does not treat as typing.
    Object.defineProperty(up, 'keyCode', { value: 16 })
    textarea.dispatchEvent(up)
  })
}
