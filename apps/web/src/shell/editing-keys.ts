/** What has the keyboard: an editor of code, a field of a form, or nothing that text is edited in. A terminal is none of them. */
type KeyContext = 'editor' | 'field' | 'elsewhere'

/** What the system does in every text: move, select and delete by words, lines and pages. */
const IN_EVERY_TEXT = /^Ctrl\+(?:Alt\+)?Shift\+(?:Arrow\w+|Home|End|PageUp|PageDown|Backspace|Delete|Z)$/
/** What the editor of code does besides. */
const IN_EDITORS: readonly string[] = ['G', 'K', 'L', 'U', '[', ']', '\\'].map((key) => `Ctrl+Shift+${key}`)

/** Whether keys belong to the text that has the keyboard rather than to the page. */
export function isEditingKey(keys: string, place: KeyContext): boolean {
  switch (place) {
    case 'elsewhere':
      return false
    case 'field':
      return IN_EVERY_TEXT.test(keys)
    case 'editor':
      return IN_EVERY_TEXT.test(keys) || IN_EDITORS.includes(keys)
  }
}

export function keyContextOf(target: EventTarget | null): KeyContext {
  if (!(target instanceof Element) || target.closest('.xterm') !== null) return 'elsewhere'
  if (target.closest('.cm-editor') !== null) return 'editor'
  return target.closest('input, textarea, select, [contenteditable=true]') === null ? 'elsewhere' : 'field'
}

/** Whether something lies over the page that has to be answered or closed first. */
export function isPageCovered(page: Document): boolean {
  return page.querySelector('dialog:modal, [role=menu]') !== null
}
