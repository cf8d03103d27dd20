/** Key of an object in the store of versions: path segments of lower-case letters and digits. */
const KEY = /^[a-z0-9]{1,64}(?:\/[a-z0-9]{1,64}){1,3}$/

export function isStoreKey(text: string): boolean {
  return KEY.test(text)
}
