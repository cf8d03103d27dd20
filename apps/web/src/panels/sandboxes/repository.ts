/** Addresses that git may be given: of the web, without a password, and nothing that is an option or a program. */
export function isRepositoryAddress(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text)
    return protocol === 'https:' && username === '' && password === '' && !/\s/.test(text)
  } catch {
    // No address at all.
    return false
  }
}

/** What a shell is told to fetch a repository into its folder. The address is quoted: it may hold anything else. */
export function cloneCommand(address: string): string {
  return `git clone -- '${new URL(address).href.replaceAll("'", '%27')}' .`
}
