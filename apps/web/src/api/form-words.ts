/** How the server names a field at the start of an error message. */
const REFUSED = /^Cannot use (?:parameter |field )?"([^"]*)"/

/**
 * Names the rejected field as the form does: `words` maps a field of the server, or the start of one
 * (`network.allow.0`), to the replacement.
 */
export function nameFormField(message: string, words: Readonly<Record<string, string>>): string {
  const [named = '', name = ''] = REFUSED.exec(message) ?? []
  const known = Object.keys(words).find((key) => name === key || name.startsWith(`${key}.`))
  return known === undefined ? message : `${words[known] ?? ''}${message.slice(named.length)}`
}
