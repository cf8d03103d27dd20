import path from 'node:path'
import { isSecureUrl } from '@sandwire/operator-settings'
import { type Environment, read } from './input.ts'
import type { Secrets } from './secrets.ts'

/** A bucket of an S3-compatible service. */
export interface S3Settings {
  /** Origin of the service. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** In front of every key, without slashes at its ends; empty: none. */
  readonly prefix: string
}

/** Where versions of sandboxes' files are stored; undefined: nowhere. */
export type StoreSettings = { readonly folder: string } | { readonly s3: S3Settings } | undefined

const DEFAULT_BACKUP_HOURS = 24
const MAX_BACKUP_HOURS = 24 * 365

/** `SANDWIRE_BACKUP_HOURS`: how often control's own data is copied to the store; 0: never. */
export function validateBackupHours(env: Environment, problems: string[]): number {
  const text = read(env, 'SANDWIRE_BACKUP_HOURS')
  if (text === undefined) return DEFAULT_BACKUP_HOURS
  const hours = /^[0-9]{1,4}$/.test(text) ? Number(text) : Number.NaN
  if (hours <= MAX_BACKUP_HOURS) return hours
  problems.push(`SANDWIRE_BACKUP_HOURS is "${text}": give whole hours from 0 to ${MAX_BACKUP_HOURS}`)
  return DEFAULT_BACKUP_HOURS
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$/
const REGION = /^[a-z0-9-]{1,32}$/

/**
 * `SANDWIRE_STORE`: `none`, an absolute folder, such as one on another disk, or `s3://BUCKET/PREFIX`. Default: a folder in the
 * data folder.
 */
export function validateStore(
  env: Environment,
  { dataFolder, secrets }: { readonly dataFolder: string; readonly secrets: Secrets },
  problems: string[],
): StoreSettings {
  const text = read(env, 'SANDWIRE_STORE')
  if (text === undefined) return { folder: path.join(dataFolder, 'store') }
  if (text === 'none') return undefined
  if (path.isAbsolute(text)) return { folder: path.normalize(text) }
  if (text.startsWith('s3://')) return validateS3(text, env, secrets, problems)
  problems.push(`SANDWIRE_STORE is "${text}": give an absolute folder, s3://BUCKET/PREFIX, or none`)
  return undefined
}

function validateS3(text: string, env: Environment, secrets: Secrets, problems: string[]): StoreSettings {
  const [bucket = '', ...rest] = text.slice('s3://'.length).replace(/\/+$/, '').split('/')
  const prefix = rest.join('/')
  const region = read(env, 'AWS_REGION') ?? 'us-east-1'
  const endpoint =
    read(env, 'AWS_ENDPOINT_URL_S3') ?? read(env, 'AWS_ENDPOINT_URL') ?? `https://s3.${region}.amazonaws.com`
  const before = problems.length
  if (!BUCKET.test(bucket) || !PREFIX.test(prefix))
    problems.push(
      `SANDWIRE_STORE is "${text}": give s3://BUCKET or s3://BUCKET/PREFIX, with letters, digits, "-", "_" and "."`,
    )
  if (!REGION.test(region)) problems.push(`AWS_REGION is "${region}": give the name of a region`)
  if (!isOriginUrl(endpoint))
    problems.push(
      `AWS_ENDPOINT_URL_S3 is "${endpoint}": give an https URL without a path; http is accepted on this machine only`,
    )
  if (secrets.awsAccessKeyId === undefined || secrets.awsSecretAccessKey === undefined)
    problems.push(
      'SANDWIRE_STORE needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or files with them in AWS_ACCESS_KEY_ID_FILE and AWS_SECRET_ACCESS_KEY_FILE',
    )
  if (problems.length > before) return undefined
  return { s3: { endpoint: new URL(endpoint).origin, region, bucket, prefix } }
}

function isOriginUrl(text: string): boolean {
  if (!isSecureUrl(text)) return false
  const { pathname, search, hash } = new URL(text)
  return pathname === '/' && search === '' && hash === ''
}
