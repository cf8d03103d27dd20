/** Shortens time constants of the bundle. Throws if one of them is missing. */
export function shorten(names: readonly string[], ms: number): (script: string) => string {
  return (script) => {
    let shortened = script
    for (const name of names) {
      const place = new RegExp(`\\b${name} = [0-9e]+;`)
      if (!place.test(shortened)) throw new Error(`Control has no ${name}`)
      shortened = shortened.replace(place, `${name} = ${ms};`)
    }
    return shortened
  }
}
