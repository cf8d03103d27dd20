/**
 * Runs in the page before its scripts, as text: gives tests the controllers of visible terminals. React stores its fibers on the
 * elements, so the page needs no test hook.
 */
export function findTerminals(): void {
  const controllerOf = (element: Element): unknown => {
    const key = Object.keys(element).find((name) => name.startsWith('__reactFiber$')) ?? ''
    let fiber: unknown = Reflect.get(element, key)
    while (typeof fiber === 'object' && fiber !== null) {
      const props: unknown = Reflect.get(fiber, 'memoizedProps')
      const controller: unknown =
        typeof props === 'object' && props !== null ? Reflect.get(props, 'controller') : undefined
      if (controller !== undefined) return controller
      fiber = Reflect.get(fiber, 'return')
    }
    return undefined
  }
  const controllers = (): unknown[] =>
    Array.from(document.querySelectorAll('.terminal-surface'))
      .filter((element) => element.checkVisibility())
      .map(controllerOf)
      .filter((controller) => controller !== undefined)
  Object.assign(globalThis, { controllers })
}
