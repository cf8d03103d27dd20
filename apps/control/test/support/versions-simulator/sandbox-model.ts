import type { HostHealth, SandboxStatus } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { ByteReader } from '@sandwire/version-format'
import type { Provider, Survival, UpstreamRequest } from '../../../src/providers/provider.ts'

/** Content by name. */
export type Files = ReadonlyMap<string, string>

/** The folder that a name is in. */
function rootOf(name: string): 'workspace' | 'home' {
  return Number(name.slice(1)) < 4 ? 'workspace' : 'home'
}

/** The workspace of one version and the home folder of another. */
export function joinRoots(workspace: Files = new Map(), home: Files = new Map()): Files {
  const of = (files: Files, root: string): [string, string][] =>
    [...files].filter(([name]) => rootOf(name) === root)
  return new Map([...of(workspace, 'workspace'), ...of(home, 'home')])
}

export function isEqual(a: Files | undefined, b: Files): boolean {
  return a !== undefined && a.size === b.size && [...a].every(([name, content]) => b.get(name) === content)
}

interface Entry {
  readonly content: string
  /** Segment that has the content. */
  readonly segment: string
}

/** What a segment of the model has: JSON instead of frames and tables. */
interface Segment {
  readonly chunks: Readonly<Record<string, string>>
  /** Every name with its content's segment; only in the last segment of a save. */
  readonly manifest?: Readonly<Record<string, string>>
  readonly isBase?: boolean
}

interface Save {
  readonly id: string
  readonly tree: ReadonlyMap<string, Entry>
  readonly segments: readonly Segment[]
  readonly files: Files
}

/** A sandboxd that saves and restores a few names, by the same rules as the real one. */
class SandboxdModel {
  head: string | undefined
  #tree: ReadonlyMap<string, Entry> = new Map()
  #save: Save | undefined
  /** Names and segments of the restore in progress, and the only folder that is restored. */
  restoring: Map<string, string> | undefined
  root: string | undefined
  changes = 0

  begin(
    files: Files,
    body: {
      readonly save: string
      readonly parent?: string
      readonly isBase: boolean
      readonly isRecorded: boolean
      readonly replaced: string[]
    },
  ): void {
    if (this.#save !== undefined && this.#save.id === body.parent) this.commit(this.#save.id)
    const isKnown = body.parent !== undefined && body.parent === this.head
    const before = isKnown ? this.#tree : new Map<string, Entry>()
    const isBase = body.isBase || !isKnown
    const isStored = (name: string, content: string): Entry | undefined => {
      const entry = before.get(name)
      return entry?.content === content && !body.replaced.includes(entry.segment) ? entry : undefined
    }
    const fresh = [...files].filter(([name, content]) => isStored(name, content) === undefined)
    const isChanged =
      isBase ||
      body.isRecorded ||
      fresh.length > 0 ||
      files.size !== before.size ||
      [...before.keys()].some((n) => !files.has(n))
    // At most two names per segment.
    const count = isChanged ? Math.max(1, Math.ceil(fresh.length / 2)) : 0
    const idOf = (number: number): string => body.save + number.toString(16).padStart(4, '0')
    const tree = new Map<string, Entry>()
    for (const [name, content] of files) {
      const at = fresh.findIndex(([each]) => each === name)
      tree.set(name, isStored(name, content) ?? { content, segment: idOf(Math.floor(at / 2)) })
    }
    const manifest = Object.fromEntries([...tree].map(([name, { segment }]) => [name, segment]))
    const segments = Array.from({ length: count }, (_, number) => ({
      chunks: Object.fromEntries(fresh.slice(number * 2, number * 2 + 2)),
      ...(number === count - 1 ? { manifest, isBase } : {}),
    }))
    this.#save = { id: body.save, tree, segments, files: new Map(files) }
  }

  get running(): Save | undefined {
    return this.#save
  }

  commit(save: string): void {
    if (this.#save?.id !== save) throw new SandwireError('conflict', 'It is not running')
    this.#tree = this.#save.tree
    this.head = save
    this.#save = undefined
  }

  load(save: string, files: Files, segments: ReadonlyMap<string, string>): void {
    this.head = save
    this.#tree = new Map(
      [...files].map(([name, content]) => [name, { content, segment: segments.get(name) ?? '' }]),
    )
    this.#save = undefined
  }
}

/** What the model needs of the simulator. */
export interface Simulator {
  /** Performs a call of control. */
  readonly call: <T>(name: string, effect: () => T | Promise<T>) => Promise<T>
  readonly sleep: (ms: number) => Promise<void>
}

/** A sandbox with its disk, and the provider that starts and stops it. */
export class SandboxModel implements Provider {
  readonly survives: Survival
  readonly deliversStopReason = true
  files = new Map<string, string>()
  sandboxd: SandboxdModel | undefined
  epoch = ''
  /** What every save found, by its id: what a restore must bring back. */
  readonly snapshots = new Map<string, Files>()
  /** Only a part of a version was written. */
  isPartial = false
  #starts = 0
  readonly #call: Simulator['call']
  readonly #sleep: Simulator['sleep']

  constructor(stop: Survival['stop'], { call, sleep }: Simulator) {
    this.survives = { detach: 'processes', stop, upgrade: 'processes' }
    this.#call = call
    this.#sleep = sleep
  }

  /** A program writes a file. */
  write(name: string, content: string | undefined): void {
    if (this.sandboxd === undefined) return
    this.sandboxd.changes += 1
    if (content === undefined) this.files.delete(name)
    else this.files.set(name, content)
  }

  /** The sandbox ends, as when its machine is lost. */
  kill(): void {
    this.sandboxd = undefined
    if (this.survives.stop === 'nothing') {
      this.files = new Map()
      this.isPartial = false
    }
  }

  start(): Promise<SandboxStatus> {
    return this.#call('start', () => {
      if (this.sandboxd === undefined) {
        this.#starts += 1
        this.epoch = `e${this.#starts}`
        this.sandboxd = new SandboxdModel()
      }
      return this.#status()
    })
  }

  status(): Promise<SandboxStatus> {
    return this.#call('status', () => this.#status())
  }

  stop(): Promise<SandboxStatus> {
    return this.#call('stop', () => {
      this.kill()
      return this.#status()
    })
  }

  fetch(address: string, request: UpstreamRequest): Promise<Response> {
    return this.#call(`${request.method} ${request.path.replace(/[0-9a-f]{28,}/, 'ID')}`, async () => {
      const { sandboxd } = this
      if (sandboxd === undefined || address !== this.epoch)
        throw new SandwireError('sandbox_unreachable', 'The sandbox does not answer')
      return this.#answer(sandboxd, request)
    })
  }

  async destroy(): Promise<void> {
    this.kill()
  }

  async disconnectAll(): Promise<void> {
    // There are no connections.
  }

  async renew(): Promise<void> {
    // It does not end by itself.
  }

  async logs(): Promise<string> {
    return ''
  }

  async health(): Promise<HostHealth> {
    return { status: 'ok', version: '0', isolation: 'none', sandboxes: 1 }
  }

  #status(): SandboxStatus {
    if (this.sandboxd === undefined) return { id: 'box', state: 'stopped' }
    return { id: 'box', state: 'running', address: this.epoch, epoch: this.epoch, startedMs: 0 }
  }

  async #answer(sandboxd: SandboxdModel, { method, path, body }: UpstreamRequest): Promise<Response> {
    const [route = ''] = path.split('?')
    const id = route.split('/').at(-1) ?? ''
    const bytes = async (): Promise<Uint8Array> =>
      new Uint8Array(await new Response(body ?? null).arrayBuffer())
    switch (`${method} ${route.replace(/\/[0-9a-f]{28,}$/, '/ID')}`) {
      case 'GET /__meta/version':
        return Response.json({ protocol: 1, compatible_from: 1 })
      case 'GET /activity':
        return Response.json({ attachments: 0, sessions: [], exits: [] })
      case 'GET /versions/changes':
        if (path.includes(`known=${sandboxd.changes}&`))
          await this.#sleep(Number(/wait=([0-9]+)/.exec(path)?.[1]) * 1000)
        return Response.json({ changes: sandboxd.changes, head: sandboxd.head ?? null })
      case 'POST /versions/saves': {
        const begin = JSON.parse(new TextDecoder().decode(await bytes())) as Parameters<
          SandboxdModel['begin']
        >[1]
        sandboxd.begin(this.files, begin)
        this.snapshots.set(begin.save, new Map(this.files))
        return Response.json({})
      }
      case 'GET /versions/segments/ID':
        return readSegment(sandboxd, id)
      case 'GET /versions/saves/ID': {
        const save = sandboxd.running
        if (save?.id !== id) throw new SandwireError('conflict', 'It is not running')
        const used = new Set([...save.tree.values()].map(({ segment }) => segment))
        const isBase = save.segments.at(-1)?.isBase ?? false
        const facts = { isChanged: save.segments.length > 0, isBase, isFuzzy: false, unreadableCount: 0 }
        return Response.json({ ...facts, segments: [...used], sparse: [] })
      }
      case 'POST /versions/saves/ID':
        sandboxd.commit(id)
        return Response.json({})
      case 'POST /versions/adopt/ID': {
        const { chunks, manifest } = readEnds(await bytes())
        const files = [...manifest].map(
          ([name, segment]) => [name, chunks.get(segment)?.[name] ?? ''] as const,
        )
        sandboxd.load(id, new Map(files), manifest)
        return Response.json({})
      }
      case 'POST /versions/restore': {
        const { manifest } = readEnds(await bytes())
        sandboxd.root = /[?]root=(\w+)$/.exec(path)?.[1]
        const isIn = (name: string): boolean => sandboxd.root === undefined || sandboxd.root === rootOf(name)
        this.isPartial = true
        this.files = new Map([...this.files].filter(([name]) => !isIn(name)))
        sandboxd.restoring = new Map([...manifest].filter(([name]) => isIn(name)))
        return Response.json({ needed: [...new Set(sandboxd.restoring.values())] })
      }
      case 'PUT /versions/segments/ID': {
        const { chunks } = JSON.parse(new TextDecoder().decode(await bytes())) as Segment
        for (const [name, segment] of sandboxd.restoring ?? [])
          if (segment === id) this.files.set(name, chunks[name] ?? 'MISSING')
        return Response.json({})
      }
      case 'POST /versions/restore/ID': {
        const names = sandboxd.restoring ?? new Map<string, string>()
        if (![...names.keys()].every((name) => this.files.has(name)))
          throw new SandwireError('version_damaged', 'Content is missing')
        if (sandboxd.root === undefined) sandboxd.load(id, this.files, names)
        sandboxd.restoring = undefined
        // The other folder was restored before.
        if (sandboxd.root !== 'home') this.isPartial = false
        return Response.json({ files: names.size, folders: 0 })
      }
    }
    throw new Error(`Unknown request ${method} ${path}`)
  }
}

function readSegment(sandboxd: SandboxdModel, id: string): Response {
  const save = sandboxd.running
  if (save?.id !== id.slice(0, -4)) throw new SandwireError('conflict', 'It is not running')
  const segment = save.segments[Number.parseInt(id.slice(-4), 16)]
  if (segment === undefined) return new Response(null, { status: 204 })
  const bytes = new TextEncoder().encode(JSON.stringify(segment))
  const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  return new Response(bytes, {
    headers: {
      'content-length': String(bytes.byteLength),
      'sandwire-sha256': sha256,
      'sandwire-trailer-bytes': String(bytes.byteLength),
    },
  })
}

/** The newest manifest, and the content of every segment, from the body of a restore. */
function readEnds(bytes: Uint8Array): {
  readonly manifest: ReadonlyMap<string, string>
  readonly chunks: ReadonlyMap<string, Readonly<Record<string, string>>>
} {
  const reader = new ByteReader(bytes)
  const manifestCount = reader.number()
  const chunks = new Map<string, Readonly<Record<string, string>>>()
  let manifest: ReadonlyMap<string, string> = new Map()
  while (!reader.isAtEnd) {
    const id = reader.raw(16).toHex()
    reader.number()
    const segment = JSON.parse(new TextDecoder().decode(reader.bytes())) as Segment
    chunks.set(id, segment.chunks)
    // The model's manifests list everything.
    if (segment.manifest !== undefined && chunks.size <= manifestCount)
      manifest = new Map(Object.entries(segment.manifest))
  }
  return { manifest, chunks }
}
