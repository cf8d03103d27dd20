/**
 * Runs in the page before its own scripts, as text: gives tests the controllers of the terminals that are visible. React keeps what it
 * drew with the elements, so the page needs no door of its own for tests.
 */
export function findTerminals(): void {
  const controllerOf = (element: Element): unknown => {
    const key = Object.keys(element).find((name) => name.startsWith('__reactFiber$')) ?? ''
    let fibre: unknown = Reflect.get(element, key)
    while (typeof fibre === 'object' && fibre !== null) {
      const props: unknown = Reflect.get(fibre, 'memoizedProps')
      const controller: unknown =
        typeof props === 'object' && props !== null ? Reflect.get(props, 'controller') : undefined
      if (controller !== undefined) return controller
      fibre = Reflect.get(fibre, 'return')
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
