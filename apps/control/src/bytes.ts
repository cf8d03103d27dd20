import { toBase64Url, toHex } from '@sandwire/bytes'

/** Decodes base64; throws if it is malformed. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0))
}

/** SHA-256 of a text, in lower-case hex. */
export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return toHex(new Uint8Array(digest))
}

/** Compares in time that depends on the lengths only. */
export function isEqualInConstantTime(left: string, right: string): boolean {
  let difference = left.length ^ right.length
  for (let at = 0; at < left.length; at++)
    difference |= left.charCodeAt(at) ^ right.charCodeAt(at % Math.max(1, right.length))
  return difference === 0
}

/** 32 random bytes in base64url. */
export function mintSecret(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
}
