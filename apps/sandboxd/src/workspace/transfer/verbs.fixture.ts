import { closeSync, writeSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import type { FileContext, Job } from '../files/context.ts'
import { openPut, putMany } from '../files/put-many.ts'
import { readMany } from '../files/read-many.ts'
import { dropUpload, finishUpload, openUpload } from '../files/upload-file.ts'
import type { Put } from './transfer-files.ts'

const FACTS = { mode: 0o644, mtimeNs: '1700000000000000000' } as const
const ID = '0'.repeat(32)
const BYTES = new TextEncoder().encode('written')

function finish<T>(job: Job<T>): T {
  for (;;) {
    const { done, value } = job.next()
    if (done === true) return value
  }
}

function put(ground: FileContext, folder: string, item: Put): string {
  const [refusal] = finish(putMany(ground, folder, { items: [item], bytes: BYTES }))
  if (refusal !== undefined) throw new SandwireError(refusal.code, refusal.why)
  return 'put'
}

function putLarge(ground: FileContext, folder: string, path: string): string {
  const file = openPut(ground, folder, path)
  try {
    writeSync(file.fd, 'written')
    return put(ground, folder, { kind: 'written', path, file, ...FACTS })
  } catch (error) {
    finish(putMany(ground, folder, { items: [{ kind: 'dropped', path, file }], bytes: BYTES }))
    throw error
  } finally {
    closeSync(file.fd)
  }
}

function read(ground: FileContext, folder: string, path: string): unknown {
  const { reads, bytes } = finish(readMany(ground, folder, { paths: [path], maxBytes: 1_000_000 }))
  const [found] = reads
  switch (found?.kind) {
    case 'refused':
      throw new SandwireError(found.refusal.code, found.refusal.why)
    case 'file':
      return { ...found, bytes: Buffer.from(bytes).toString('latin1') }
    case 'open':
      closeSync(found.fd)
      return found
    case 'folder':
    case 'link':
    case undefined:
      return found
  }
}

function upload(ground: FileContext, path: string): unknown {
  const opened = finish(openUpload(ground, { path, id: ID }, { makes: true, staleBeforeNs: '0' }))
  if (opened === undefined) return undefined
  try {
    writeSync(opened.fd, 'written')
    return finishUpload(ground, { path, id: ID }, { sizeBytes: 7 })
  } finally {
    closeSync(opened.fd)
    dropUpload(ground, { path, id: ID })
  }
}

/** Every transfer operation; each returns what it discloses. */
export const TRANSFER_VERBS: Readonly<Record<string, (ground: FileContext, at: string) => unknown>> = {
  'put a file': (ground, at) =>
    put(ground, '.', { kind: 'file', path: at, from: 0, to: BYTES.length, ...FACTS }),
  'put a file into': (ground, at) =>
    put(ground, at, { kind: 'file', path: 'f', from: 0, to: BYTES.length, ...FACTS }),
  'put a large file': (ground, at) => putLarge(ground, '.', at),
  'put a large file into': (ground, at) => putLarge(ground, at, 'deep/f'),
  'put a folder': (ground, at) => put(ground, '.', { kind: 'folder', path: at }),
  'put a link': (ground, at) => put(ground, '.', { kind: 'link', path: at, target: 'inside', mtimeNs: '0' }),
  'put a second name': (ground, at) => put(ground, '.', { kind: 'hard-link', path: 'second', target: at }),
  'settle a folder': (ground, at) =>
    put(ground, '.', { kind: 'settled', path: at, mode: 0o755, mtimeNs: '0' }),
  'read many': (ground, at) => read(ground, '.', at),
  'read many in': (ground, at) => read(ground, at, 'f'),
  'upload in pieces': upload,
}
