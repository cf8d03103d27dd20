/** How the server names a part of what it was sent, before it says what is wrong with it. */
const REFUSED = /^Cannot use (?:parameter |field )?"([^"]*)"/

/**
 * A refusal in the words of a form: `words` has, for each name the server knows, what to say instead of it. A name that leads into
 * a part (`network.allow.0`) is found by its beginning.
 */
export function nameFormField(message: string, words: Readonly<Record<string, string>>): string {
  const [named = '', name = ''] = REFUSED.exec(message) ?? []
  const known = Object.keys(words).find((key) => name === key || name.startsWith(`${key}.`))
  return known === undefined ? message : `${words[known] ?? ''}${message.slice(named.length)}`
}
