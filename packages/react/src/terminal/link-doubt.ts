/** A link that says one address, or none that can be seen, and leads to another. */
export interface DoubtfulLink {
  /** What it says. */
  readonly text: string
  /** Where it leads. */
  readonly address: string
}

/** Addresses as people write them, with or without how they are fetched; dots of other scripts count. */
const ADDRESS =
  /[a-z][a-z\d+.-]*:\/\/\S+|(?:[\p{L}\p{M}\p{N}-]+[.。．｡])+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*(?:[:/?#]\S*)?/giu
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
const CLOSING = /[.,;:!?)\]}>'"»”’]+$/u

/** What of an address has to be the same; without a path in the text, it says nothing of one. */
function isSamePlace(said: string, target: URL): boolean {
  try {
    const url = new URL(SCHEME.test(said) ? said : `${target.protocol}//${said}`)
    const path = (one: URL): string => `${one.pathname}${one.search}${one.hash}`.replace(/\/$/, '')
    return url.host === target.host && (path(url) === '' || path(url) === path(target))
  } catch {
    // It looks like an address and is none: it leads nowhere near.
    return false
  }
}

/**
 * Whether somebody could take a link for another one: a program chooses its text and its address apart (OSC 8). `isSeen`: its address
 * is shown before it is opened, so a text that is no address promises nothing.
 */
export function isDoubtful(text: string, address: string, isSeen: boolean): boolean {
  const target = new URL(address)
  if (target.username !== '' || target.password !== '') return true
  const said = (text.replaceAll(/\p{Cf}/gu, '').match(ADDRESS) ?? []).map((one) => one.replace(CLOSING, ''))
  return said.length === 0 ? !isSeen : !said.every((one) => isSamePlace(one, target))
}
