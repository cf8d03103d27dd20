import { createHash } from 'node:crypto'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import type { DataFolder } from './data-folder.ts'
import { readOrMake, writePrivateFile } from './private-file.ts'

const TOKEN = /^swl_[A-Za-z0-9_-]{43}$/
const PAGE_NAME = /^sandwire-[0-9a-f]{20}$/
const SECRET_BYTES = 32

/** What control is given to sign, to mint ids and to know the local user by. Made once per data folder. */
export interface Keys {
  /** Ed25519 private key, PKCS8 in base64. */
  readonly signingKey: string
  /** Key of the HMAC in sandbox ids, in base64. */
  readonly idKey: string
  /** Keys of session tokens, as `decodeSessionKeys` reads them. */
  readonly sessionTokenSecret: string
  /** Control knows the local token by this alone. */
  readonly localTokenSha256: string
  /** A name for this machine's pages that nobody can guess. */
  readonly pageName: string
}

function randomBytes(): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))
}

async function makeSigningKey(): Promise<string> {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  return Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey)).toString('base64')
}

function makeSessionKeys(): string {
  return `k1:${randomBytes().toString('base64')}`
}

/** Of letters and digits, as a part of a host name is. */
function makePageName(): string {
  return `sandwire-${randomBytes().toString('hex').slice(0, 20)}`
}

function makeToken(): string {
  return `swl_${randomBytes().toString('base64url')}`
}

/** Reads the keys of a data folder, and makes those it does not have. */
export async function openKeys(folder: DataFolder, options: { readonly isNewToken: boolean }): Promise<Keys> {
  const fresh = await makeSigningKey()
  const signingKey = readOrMake(path.join(folder.keys, 'signing-key'), () => fresh)
  const idKey = readOrMake(path.join(folder.keys, 'id-key'), () => randomBytes().toString('base64'))
  const sessionTokenSecret = readOrMake(path.join(folder.keys, 'session-token-secret'), makeSessionKeys)
  const pageName = readOrMake(path.join(folder.keys, 'page-name'), makePageName).trim()
  if (!PAGE_NAME.test(pageName))
    throw new SandwireError(
      'bad_request',
      `Cannot use "${path.join(folder.keys, 'page-name')}": it holds no name; remove it`,
    )
  if (options.isNewToken) writePrivateFile(folder.localToken, makeToken())
  const token = readOrMake(folder.localToken, makeToken).trim()
  if (!TOKEN.test(token))
    throw new SandwireError(
      'bad_request',
      `Cannot use "${folder.localToken}": it holds no token; make a new one with --new-token`,
    )
  const localTokenSha256 = createHash('sha256').update(token).digest('hex')
  return { signingKey, idKey, sessionTokenSecret, localTokenSha256, pageName }
}
