export { concatBytes } from './concat.ts'
export { fromBase64Url, toBase64Url } from './base64url.ts'
export { toHex } from './hex.ts'
