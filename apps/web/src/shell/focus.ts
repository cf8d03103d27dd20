/** True when the focused element was removed and nothing else has the focus. */
export function hasLostFocus(): boolean {
  return document.activeElement === null || document.activeElement === document.body
}
