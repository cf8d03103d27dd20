/** A field of decoded JSON or of a caught error; undefined if the value is not an object or lacks the field. */
export function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, name)?.value
}
