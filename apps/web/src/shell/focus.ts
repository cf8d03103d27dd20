/** Whether what had the keyboard is gone, and nobody else has taken it. */
export function hasLostFocus(): boolean {
  return document.activeElement === null || document.activeElement === document.body
}
