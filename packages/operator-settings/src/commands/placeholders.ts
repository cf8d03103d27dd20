/** `{name}` in an argument of a template. */
const PLACEHOLDER = /\{([a-z][A-Za-z0-9_]{0,31})\}/g

/** Names of the parameters that an argument holds, in order. */
export function listPlaceholders(argument: string): readonly string[] {
  return [...argument.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}

/** Puts values in the places of parameters, in one pass: nothing in a value is taken for a placeholder. */
export function replacePlaceholders(argument: string, valueOf: (name: string) => string): string {
  return argument.replaceAll(PLACEHOLDER, (_, name: string) => valueOf(name))
}
