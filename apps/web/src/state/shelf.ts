/** The places of a browser that keep text. */
export type Shelf = Pick<Storage, 'getItem' | 'setItem'>

/** Puts a text away, where there is room for it. */
export function keep(shelf: Shelf, key: string, text: string): void {
  try {
    shelf.setItem(key, text)
  } catch {
    // A full or forbidden storage costs what is found after a reload, nothing else.
  }
}
