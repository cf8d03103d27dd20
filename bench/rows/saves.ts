import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { writeTree } from '../peers/many-files.ts'
import { openQuarterGroup, VersionEngine } from '../peers/version-engine.ts'
import type { EngineResult } from '../programs/version-engine.ts'
import { type Absent, atMost, below, type Competitor, type Row } from '../row.ts'
import type { Scratch } from '../scratch.ts'
import { quantile } from '../statistics.ts'

const FILES = 50_000
const MANY_FILES = 100_000
const LARGE_BYTES = 1024 ** 3
const BLOCK_BYTES = 1024 ** 2
const PAUSED_BYTES = 30 * 1024 ** 2
/** Until memory that was freed is returned. */
const SETTLE_MS = 2_000
/** Saves per figure of the pause. */
const PAUSES = 20

const OURS = 'sandwire'
const HINTED = 'sandwire hinted'
const TAR = 'tar | zstd -1'
const RESTIC = 'restic'

/** Processor time of a shell command with all its processes, in seconds. */
async function timeShell(script: string, env: Readonly<Record<string, string>> = {}): Promise<number> {
  const child = Bun.spawn(['bash', '-o', 'pipefail', '-c', script], {
    stdout: 'ignore',
    stderr: 'pipe',
    env: { ...process.env, ...env },
  })
  const errors = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(errors.trim().slice(-200))
  return Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0)
}

/** A tree that every competitor of a row saves, and what they save it into. */
interface Place {
  readonly tree: string
  /** A file in it. */
  readonly file: string
  readonly targets: string
}

const places = new Map<string, Place>()

/** Made once per run: several rows use the same tree. */
function openPlace(scratch: Scratch, kind: 'many' | 'large'): Place {
  const known = places.get(kind)
  if (known !== undefined) return known
  const tree = join(scratch.directory, `saves-${kind}`)
  const targets = join(scratch.directory, `saves-${kind}-targets`)
  mkdirSync(tree)
  mkdirSync(targets)
  const file = kind === 'many' ? writeTree(tree, FILES) : join(tree, 'disk.img')
  if (kind === 'large') writeRandom(file, 0, LARGE_BYTES)
  const place = { tree, file, targets }
  places.set(kind, place)
  return place
}

function writeRandom(path: string, start: number, bytes: number): void {
  const fd = openSync(path, start === 0 ? 'a+' : 'r+')
  const block = Buffer.alloc(BLOCK_BYTES)
  for (let at = 0; at < bytes; at += BLOCK_BYTES) {
    for (let part = 0; part < BLOCK_BYTES; part += 65_536)
      crypto.getRandomValues(block.subarray(part, part + 65_536))
    writeSync(fd, block, 0, BLOCK_BYTES, start + at)
  }
  closeSync(fd)
}

const nothing = async (): Promise<void> => undefined

function peer(name: string, program: string, measure: () => Promise<number>): Competitor | Absent {
  if (Bun.which(program) === null) return { name, absent: `not installed (apt-get install ${program})` }
  return { name, side: 'peer', measure, [Symbol.asyncDispose]: nothing }
}

function ours(name: string, engine: AsyncDisposable, measure: () => Promise<number>): Competitor {
  return { name, side: 'ours', measure, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

function tarOf({ tree, targets }: Place): string {
  return `tar -C '${tree}' -cf - . | zstd -1 -q -f -o '${targets}/tree.tar.zst'`
}

/** A repository of restic; a first snapshot is made when `isSaved`. */
async function openRestic(place: Place, isSaved: boolean): Promise<(again: boolean) => Promise<number>> {
  const { tree, targets } = place
  let count = 0
  const create = async (): Promise<string> => {
    count += 1
    const repository = join(targets, `restic-${count}`)
    rmSync(repository, { recursive: true, force: true })
    await timeShell(`restic -q init -r '${repository}'`, RESTIC_ENV)
    return repository
  }
  const backup = (repository: string): Promise<number> =>
    timeShell(
      `cd '${tree}' && restic -q -r '${repository}' --cache-dir '${targets}/cache' backup .`,
      RESTIC_ENV,
    )
  if (Bun.which('restic') === null) return async () => Number.NaN
  const first = isSaved ? await create() : ''
  if (isSaved) await backup(first)
  return async (again) => backup(again ? first : await create())
}

const RESTIC_ENV = { RESTIC_PASSWORD: 'bench' }

function freshStore({ targets }: Place): string {
  const store = join(targets, `store-${crypto.randomUUID()}`)
  mkdirSync(store)
  return store
}

/** One first save in a new process. */
async function saveFirst(place: Place): Promise<EngineResult> {
  const store = freshStore(place)
  await using engine = new VersionEngine(place.tree, store)
  const result = await engine.run({ verb: 'save', scan: 'unknown' })
  rmSync(store, { recursive: true })
  return result
}

export const saveFirstTime: Row = {
  id: 'save-first',
  title: `first save of ${FILES.toLocaleString('en')} files, processor time`,
  unit: 's',
  digits: 2,
  about: `A tree of ${FILES} files of 5 KB, saved into a folder: sandboxd's engine in its own process, other programs with their start.`,
  targets: [atMost(OURS, TAR, 1.3)],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'many')
    const restic = await openRestic(place, false)
    return [
      peer(TAR, 'zstd', () => timeShell(tarOf(place))),
      peer('cp -a', 'cp', async () => {
        const copy = join(place.targets, 'copy')
        const seconds = await timeShell(`cp -a '${place.tree}' '${copy}'`)
        rmSync(copy, { recursive: true })
        return seconds
      }),
      peer(RESTIC, 'restic', () => restic(false)),
      ours(OURS, { [Symbol.asyncDispose]: nothing }, async () => (await saveFirst(place)).cpuSeconds),
    ]
  },
}

export const saveFirstBytes: Row = {
  id: 'save-first-bytes',
  title: `first save of ${FILES.toLocaleString('en')} files, stored`,
  unit: 'MB',
  digits: 1,
  about: 'Stored bytes of the same save.',
  rounds: 1,
  targets: [atMost(OURS, TAR, 1.02)],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'many')
    const restic = await openRestic(place, false)
    return [
      peer(TAR, 'zstd', async () => {
        await timeShell(tarOf(place))
        return statSync(join(place.targets, 'tree.tar.zst')).size / 1e6
      }),
      peer(RESTIC, 'restic', async () => {
        await restic(false)
        return sizeOf(join(place.targets, 'restic-1')) / 1e6
      }),
      ours(OURS, { [Symbol.asyncDispose]: nothing }, async () => (await saveFirst(place)).bytes / 1e6),
    ]
  },
}

/** An engine that has saved the tree, and changes one file before each further save. */
async function openSaved(
  place: Place,
  prefix: readonly string[] = [],
): Promise<{
  readonly engine: VersionEngine
  readonly again: (scan: 'full' | 'hinted') => Promise<EngineResult>
}> {
  const engine = new VersionEngine(place.tree, freshStore(place), prefix)
  await engine.run({ verb: 'save', scan: 'unknown' })
  // Reads what changed in the last milliseconds, and observes every folder.
  await engine.run({ verb: 'save', scan: 'full' })
  const again = async (scan: 'full' | 'hinted'): Promise<EngineResult> => {
    appendFileSync(place.file, 'x')
    const result = await engine.run({ verb: 'save', scan })
    if (result.puts !== 1) throw new Error(`The save took ${result.puts} puts`)
    return result
  }
  return { engine, again }
}

export const saveAgain: Row = {
  id: 'save-again',
  title: `one changed file in ${FILES.toLocaleString('en')}, processor time`,
  unit: 's',
  digits: 4,
  about:
    'A save after one file was appended to, with a scan of all folders and with hints of inotify; each is one put.',
  targets: [atMost(OURS, TAR, 0.2), below(HINTED, 0.005, 's')],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'many')
    const restic = await openRestic(place, true)
    const { engine, again } = await openSaved(place)
    return [
      peer(TAR, 'zstd', () => timeShell(tarOf(place))),
      peer(RESTIC, 'restic', () => {
        appendFileSync(place.file, 'x')
        return restic(true)
      }),
      ours(OURS, { [Symbol.asyncDispose]: nothing }, async () => (await again('full')).cpuSeconds),
      ours(HINTED, engine, async () => (await again('hinted')).cpuSeconds),
    ]
  },
}

export const saveAgainBytes: Row = {
  id: 'save-again-bytes',
  title: `one changed file in ${FILES.toLocaleString('en')}, sent`,
  unit: 'KB',
  digits: 2,
  about: 'Bytes of the one put of such a save.',
  rounds: 1,
  targets: [below(OURS, 2, 'KB')],
  open: async ({ scratch }) => {
    const { engine, again } = await openSaved(openPlace(scratch, 'many'))
    return [ours(OURS, engine, async () => (await again('full')).bytes / 1e3)]
  },
}

export const saveQuarter: Row = {
  id: 'save-quarter',
  title: `one changed file in ${FILES.toLocaleString('en')} with a quarter of a processor`,
  unit: 's',
  digits: 2,
  about:
    'Time until such a save with a scan of all folders is stored, in a control group with a quota of 25 %.',
  targets: [below(OURS, 1.5, 's')],
  open: async ({ scratch }) => {
    const group = openQuarterGroup()
    if (group === undefined) return [{ name: OURS, absent: 'cannot limit the processor (needs root)' }]
    const place = openPlace(scratch, 'many')
    const { engine, again } = await openSaved(place, group.prefix)
    const close = async (): Promise<void> => {
      await engine[Symbol.asyncDispose]()
      group[Symbol.dispose]()
    }
    return [
      ours(OURS, { [Symbol.asyncDispose]: close }, async () => (await again('full')).wallSeconds),
      peer(TAR, 'zstd', async () => {
        const startMs = performance.now()
        const [shell = '', option = '', ...rest] = group.prefix
        const child = Bun.spawn([shell, option, ...rest, 'bash', '-c', tarOf(place)])
        await child.exited
        return (performance.now() - startMs) / 1000
      }),
    ]
  },
}

/** A megabyte in the middle of the large file changes before each save. */
async function openLarge(place: Place) {
  const engine = new VersionEngine(place.tree, freshStore(place))
  await engine.run({ verb: 'save', scan: 'unknown' })
  const again = (): Promise<EngineResult> => {
    writeRandom(place.file, LARGE_BYTES / 2, BLOCK_BYTES)
    return engine.run({ verb: 'save', scan: 'full' })
  }
  return { engine, again }
}

export const saveBlock: Row = {
  id: 'save-block',
  title: '1 MiB changed in 1 GiB, processor time',
  unit: 's',
  digits: 2,
  about: 'A save after 1 MiB of a file of 1 GiB of random bytes was replaced.',
  targets: [atMost(OURS, TAR, 0.5)],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'large')
    const restic = await openRestic(place, true)
    const { engine, again } = await openLarge(place)
    return [
      peer(TAR, 'zstd', () => timeShell(tarOf(place))),
      peer(RESTIC, 'restic', () => {
        writeRandom(place.file, LARGE_BYTES / 2, BLOCK_BYTES)
        return restic(true)
      }),
      ours(OURS, engine, async () => (await again()).cpuSeconds),
    ]
  },
}

export const saveBlockBytes: Row = {
  id: 'save-block-bytes',
  title: '1 MiB changed in 1 GiB, sent',
  unit: 'MB',
  digits: 2,
  about: 'Bytes of such a save.',
  rounds: 1,
  targets: [below(OURS, 2.2, 'MB')],
  open: async ({ scratch }) => {
    const { engine, again } = await openLarge(openPlace(scratch, 'large'))
    return [ours(OURS, engine, async () => (await again()).bytes / 1e6)]
  },
}

export const restoreFiles: Row = {
  id: 'restore',
  title: `restore of ${FILES.toLocaleString('en')} files`,
  unit: 's',
  digits: 2,
  about: 'Processor time to write the tree into an empty folder in memory.',
  targets: [atMost(OURS, 'zstd | tar', 1.15)],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'many')
    await timeShell(tarOf(place))
    const store = freshStore(place)
    await using first = new VersionEngine(place.tree, store)
    await first.run({ verb: 'save', scan: 'unknown' })
    const restic = await openRestic(place, true)
    await restic(true)
    // In memory: on a disk, the time to create files varies more than the competitors differ.
    const parent = existsSync('/dev/shm') ? '/dev/shm' : place.targets
    const target = join(parent, `sandwire-restored-${process.pid}`)
    const into = async (work: () => Promise<number>): Promise<number> => {
      mkdirSync(target)
      try {
        return await work()
      } finally {
        rmSync(target, { recursive: true })
      }
    }
    const { targets } = place
    return [
      peer('zstd | tar', 'zstd', () =>
        into(() => timeShell(`zstd -d -q -c '${targets}/tree.tar.zst' | tar -C '${target}' -xf -`)),
      ),
      peer(RESTIC, 'restic', () =>
        into(() =>
          timeShell(
            `restic -q -r '${targets}/restic-1' --no-cache restore latest --target '${target}'`,
            RESTIC_ENV,
          ),
        ),
      ),
      ours(OURS, { [Symbol.asyncDispose]: nothing }, () =>
        into(async () => {
          await using engine = new VersionEngine(target, store)
          return (await engine.run({ verb: 'restore' })).cpuSeconds
        }),
      ),
    ]
  },
}

export const saveMemory: Row = {
  id: 'save-memory',
  title: `memory for ${MANY_FILES.toLocaleString('en')} saved files`,
  unit: 'MB',
  about: `Growth of the process over one that saved an empty folder: after a first save of ${MANY_FILES} files, and after one more with a scan of all folders and a hinted one ${SETTLE_MS / 1000} s later.`,
  targets: [below(OURS, 100, 'MB')],
  open: async ({ scratch }) => {
    const tree = join(scratch.directory, 'saves-memory')
    const empty = join(scratch.directory, 'saves-empty')
    const file = writeTree(tree, MANY_FILES)
    const measure = async (root: string, saves: readonly ('full' | 'hinted')[]): Promise<number> => {
      const store = join(scratch.directory, `store-${crypto.randomUUID()}`)
      await using engine = new VersionEngine(root, store)
      let { pssBytes } = await engine.run({ verb: 'save', scan: 'unknown' })
      for (const scan of saves) {
        if (root === tree) appendFileSync(file, 'x')
        if (scan === 'hinted') await Bun.sleep(SETTLE_MS)
        ;({ pssBytes } = await engine.run({ verb: 'save', scan }))
      }
      rmSync(store, { recursive: true })
      return pssBytes / 1e6
    }
    const growth = async (saves: readonly ('full' | 'hinted')[]): Promise<number> => {
      const base = await measure(empty, saves)
      return (await measure(tree, saves)) - base
    }
    return [
      ours(OURS, { [Symbol.asyncDispose]: nothing }, () => growth(['full', 'hinted'])),
      ours('first save', { [Symbol.asyncDispose]: nothing }, () => growth([])),
    ]
  },
}

export const savePause: Row = {
  id: 'save-pause',
  title: 'pause of processes while 30 MiB have changed',
  unit: 'ms',
  about: `How long processes are stopped, 95th percentile of ${PAUSES} hinted saves after three files of 10 MiB were replaced.`,
  targets: [below(OURS, 100, 'ms')],
  open: async ({ scratch }) => {
    const place = openPlace(scratch, 'many')
    const engine = new VersionEngine(place.tree, freshStore(place))
    await engine.run({ verb: 'save', scan: 'unknown' })
    await engine.run({ verb: 'save', scan: 'full' })
    const folder = dirname(place.file)
    return [
      ours(OURS, engine, async () => {
        const pauses: number[] = []
        for (let left = PAUSES; left > 0; left -= 1) {
          for (const name of ['a', 'b', 'c']) {
            rmSync(join(folder, name), { force: true })
            writeRandom(join(folder, name), 0, PAUSED_BYTES / 3)
          }
          pauses.push((await engine.run({ verb: 'save', scan: 'hinted' })).pauseMs)
        }
        return quantile(pauses, 0.95)
      }),
    ]
  },
}
