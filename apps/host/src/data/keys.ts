import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { decodeSessionKeys } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { DataFolder } from './data-folder.ts'
import { readOrCreate, writePrivateFile } from './private-file.ts'

const TOKEN = /^swl_[A-Za-z0-9_-]{43}$/
const PAGE_NAME = /^sandwire-[0-9a-f]{20}$/
const SECRET_BYTES = 32

/** Keys of control. Created once for each data folder. */
export interface Keys {
  /** Ed25519 private key, PKCS8 in base64. */
  readonly signingKey: string
  /** Key of the HMAC in sandbox ids, in base64. */
  readonly idKey: string
  /** Keys of session tokens, as `decodeSessionKeys` reads them. */
  readonly sessionTokenSecret: string
  /** Hash of the local token; control never has the token itself. */
  readonly localTokenSha256: string
  /** Random host name of this installation's pages. */
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

/** Valid as a part of a host name. */
function makePageName(): string {
  return `sandwire-${randomBytes().toString('hex').slice(0, 20)}`
}

function makeToken(): string {
  return `swl_${randomBytes().toString('base64url')}`
}

async function isSigningKey(text: string): Promise<boolean> {
  try {
    await crypto.subtle.importKey('pkcs8', Buffer.from(text, 'base64'), 'Ed25519', false, ['sign'])
    return true
  } catch {
    // Truncated, or not a key.
    return false
  }
}

function areSessionKeys(text: string): boolean {
  try {
    return decodeSessionKeys(text).length > 0
  } catch {
    // Its message is about an environment variable, and this is a file.
    return false
  }
}

function refuse(isGood: boolean, file: string, advice: string): void {
  if (!isGood) throw new SandwireError('bad_request', `Cannot use "${file}": it contains no ${advice}`)
}

/** A new key would make every existing sandbox inaccessible, so a missing one is an error when there are sandboxes. */
function requireIdKey(file: string, { objects }: DataFolder): void {
  if (existsSync(file) || readdirSync(objects).length === 0) return
  throw new SandwireError(
    'bad_request',
    `Cannot access the sandboxes in this data folder: "${file}" is missing\nhint: restore it from a backup, or choose another folder with --data`,
  )
}

/** Reads the keys of a data folder, and creates missing ones. */
export async function openKeys(folder: DataFolder, options: { readonly isNewToken: boolean }): Promise<Keys> {
  const at = (name: string): string => path.join(folder.keys, name)
  const files = { signing: at('signing-key'), id: at('id-key'), session: at('session-token-secret') }
  requireIdKey(files.id, folder)
  const fresh = await makeSigningKey()
  const signingKey = readOrCreate(files.signing, () => fresh)
  const idKey = readOrCreate(files.id, () => randomBytes().toString('base64'))
  const sessionTokenSecret = readOrCreate(files.session, makeSessionKeys)
  const pageName = readOrCreate(at('page-name'), makePageName).trim()
  refuse(await isSigningKey(signingKey), files.signing, 'key; restore it from a backup, or remove it')
  const isIdKey = Buffer.from(idKey, 'base64').length === SECRET_BYTES
  refuse(isIdKey, files.id, 'key; restore it from a backup: without it the sandboxes are inaccessible')
  refuse(areSessionKeys(sessionTokenSecret), files.session, 'key; remove it')
  refuse(PAGE_NAME.test(pageName), at('page-name'), 'name; remove it')
  if (options.isNewToken) writePrivateFile(folder.localToken, makeToken())
  const token = readOrCreate(folder.localToken, makeToken).trim()
  refuse(TOKEN.test(token), folder.localToken, 'token; create a new one with --new-token')
  const localTokenSha256 = createHash('sha256').update(token).digest('hex')
  return { signingKey, idKey, sessionTokenSecret, localTokenSha256, pageName }
}
