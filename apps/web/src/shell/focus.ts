/** Whether what had the keyboard is gone, and nobody else has taken it. */
export function hasLostKeyboard(): boolean {
  return document.activeElement === null || document.activeElement === document.body
}
