import { SandwireError, schema } from '@sandwire/protocol'
import { ByteReader } from '@sandwire/version-format'
import { readBytes, readJson } from '../http/request-body.ts'
import { respondJson } from '../http/respond.ts'
import type { RestoreEnd, VersionEnds } from './messages.ts'
import type { VersionService } from './version-service.ts'

/** Ends of all segments of a version: about 60 bytes per file. */
const MAX_ENDS_BYTES = 256 * 1024 * 1024
/** A segment of 8 MiB with the manifest of a million files. */
const MAX_SEGMENT_BYTES = 144 * 1024 * 1024

/** Below the idle timeout of connections. */
const MAX_WAIT_SECONDS = 60

const SAVE = /^[0-9a-f]{28}$/
const SEGMENT = /^[0-9a-f]{32}$/
const ROOTS = ['workspace', 'home']
const KINDS = ['periodic', 'checkpoint', 'stop'] as const

const saveSchema = schema.record({
  save: schema.text(28, SAVE),
  parent: schema.optional(schema.text(28, SAVE)),
  kind: schema.oneOf(KINDS),
  record: schema.text(16 * 1024),
  isBase: schema.bool,
  isFullScan: schema.bool,
  isRecorded: schema.bool,
  replaced: schema.list(schema.text(32, SEGMENT), 10_000),
})

interface VersionCall {
  readonly request: Request
  readonly url: URL
  readonly id: string
}

export type VersionHandler = (call: VersionCall, service: VersionService) => Promise<Response>

/** Routes that accept query parameters. */
export const VERSION_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  '/versions/changes': ['known', 'wait'],
  '/versions/restore': ['root'],
}

/** Routes that control uses to save and restore. */
export const VERSION_ROUTES: Readonly<Record<string, Readonly<Record<string, VersionHandler>>>> = {
  '/versions/saves': { POST: beginSave },
  '/versions/saves/:id': { GET: showSave, POST: commitSave },
  '/versions/segments/:id': { GET: readSegment, PUT: addSegment },
  '/versions/changes': { GET: showChanges },
  '/versions/adopt/:id': { POST: adopt },
  '/versions/restore': { POST: beginRestore },
  '/versions/restore/:id': { POST: finishRestore },
}

async function beginSave({ request }: VersionCall, service: VersionService): Promise<Response> {
  const body = saveSchema.decode(await readJson(request))
  if (body === undefined) throw invalid('the body')
  await service.begin({ ...body, parent: body.parent })
  return respondJson({ save: body.save })
}

async function readSegment({ id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SEGMENT, id)
  const segment = await service.segment(id)
  if (segment === undefined) return new Response(null, { status: 204 })
  return new Response(segment.bytes, {
    headers: {
      'content-type': 'application/octet-stream',
      'sandwire-sha256': segment.sha256,
      'sandwire-trailer-bytes': String(segment.trailerBytes),
    },
  })
}

/** `known` is the number that the caller has; the response waits until it changes, for at most `wait` seconds. */
async function showChanges({ url }: VersionCall, service: VersionService): Promise<Response> {
  const known = numberOf(url, 'known', Number.MAX_SAFE_INTEGER)
  const waitSeconds = numberOf(url, 'wait', MAX_WAIT_SECONDS) ?? 0
  const { changes, head, isEnding } = await service.changes(known, waitSeconds * 1000)
  return respondJson({ changes: changes ?? null, head: head ?? null, isEnding })
}

function numberOf(url: URL, name: string, max: number): number | undefined {
  const text = url.searchParams.get(name)
  if (text === null) return undefined
  if (!/^[0-9]{1,15}$/.test(text) || Number(text) > max) throw invalid(`the parameter "${name}"`)
  return Number(text)
}

async function showSave({ id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SAVE, id)
  return respondJson(await service.summary(id))
}

async function commitSave({ id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SAVE, id)
  await service.commit(id)
  return respondJson({ save: id })
}

/** The body has the number of segments with the manifest; then, for each segment: id (16 bytes), size, and its end with the length in front. */
async function readEnds(request: Request): Promise<VersionEnds> {
  const reader = new ByteReader(await readBytes(request, MAX_ENDS_BYTES))
  const manifestCount = reader.number()
  const ends: RestoreEnd[] = []
  while (!reader.isAtEnd)
    ends.push({ id: reader.raw(16).toHex(), sizeBytes: reader.number(), end: reader.bytes().slice() })
  return { ends, manifestCount }
}

async function adopt({ request, id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SAVE, id)
  await service.adopt(await readEnds(request), id)
  return respondJson({ save: id })
}

/** `root` names the only folder that is restored. */
async function beginRestore({ request, url }: VersionCall, service: VersionService): Promise<Response> {
  const root = url.searchParams.get('root') ?? undefined
  if (root !== undefined && !ROOTS.includes(root)) throw invalid('the parameter "root"')
  return respondJson({ needed: await service.beginRestore(await readEnds(request), root) })
}

async function addSegment({ request, id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SEGMENT, id)
  const bytes = await readBytes(request, MAX_SEGMENT_BYTES)
  const expected = request.headers.get('sandwire-sha256')
  if (new Bun.CryptoHasher('sha256').update(bytes).digest('hex') !== expected)
    throw new SandwireError('version_damaged', 'Cannot restore the segment: its checksum is wrong')
  await service.addSegment(id, bytes)
  return respondJson({ id })
}

async function finishRestore({ id }: VersionCall, service: VersionService): Promise<Response> {
  checkId(SAVE, id)
  return respondJson(await service.finishRestore(id))
}

function checkId(pattern: RegExp, id: string): void {
  if (!pattern.test(id)) throw invalid('the id')
}

function invalid(what: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use ${what}: it is malformed`)
}
