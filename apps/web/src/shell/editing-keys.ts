/** What has the focus: a code editor, a form field, or anything else, such as a terminal. */
type KeyContext = 'editor' | 'field' | 'elsewhere'

/** Standard text editing keys: move, select and delete by words, lines and pages. */
const IN_EVERY_TEXT = /^Ctrl\+(?:Alt\+)?Shift\+(?:Arrow\w+|Home|End|PageUp|PageDown|Backspace|Delete|Z)$/
/** Further keys of the code editor. */
const IN_EDITORS: readonly string[] = ['G', 'K', 'L', 'U', '[', ']', '\\'].map((key) => `Ctrl+Shift+${key}`)

/** True when keys belong to the focused text rather than to the page. */
export function isEditingKey(keys: string, context: KeyContext): boolean {
  switch (context) {
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

/** True while a modal dialog or a menu is open. */
export function isPageCovered(page: Document): boolean {
  return page.querySelector('dialog:modal, [role=menu]') !== null
}
