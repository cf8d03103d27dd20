import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { describeVersionRound, VersionFaults, type VersionRound } from '../fuzz/version-faults.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 120_000

let faults: VersionFaults

beforeAll(async () => {
  faults = await VersionFaults.open()
}, TIMEOUT_MS)

afterAll(async () => {
  await faults[Symbol.asyncDispose]()
}, TIMEOUT_MS)

const ROUNDS: readonly VersionRound[] = [
  { victim: 'host', moment: 'stored' },
  { victim: 'workerd', moment: 'segment' },
]

// All combinations, at random: `npm run soak -- --kept N`.
test.each(ROUNDS.map((round) => [describeVersionRound(round), round] as const))(
  'the files are those of one moment, and are saved again: %s',
  async (_, round) => {
    await faults.run(round)
  },
  TIMEOUT_MS,
)

interface SandboxView {
  readonly state: string
  readonly saved: { readonly state: string; readonly error: string | null }
}

async function saved(): Promise<SandboxView['saved']> {
  return ((await faults.request('GET', '')) as SandboxView).saved
}

test(
  'a store that fails is reported, commands go on, and the files are saved when it works again',
  async () => {
    faults.store.always('put', () => Promise.resolve(new Response(null, { status: 500 })))
    await faults.shell('echo late > late')
    const refused = await faults.fetch('POST', '/checkpoints', {})
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: 'store_unavailable' } },
    ])
    expect(await saved()).toMatchObject({ error: 'store_unavailable' })
    expect(await faults.shell('cat late')).toBe('late\n')
    faults.store.heal()
    // By itself.
    const isSaved = async (): Promise<boolean> => {
      const { state, error } = await saved()
      return state === 'idle' && error === null
    }
    await eventually(isSaved, { what: 'the files to be saved', intervalMs: 250 })
  },
  TIMEOUT_MS,
)

test(
  'a version with a damaged or missing segment is refused whole, and an older one is restored',
  async () => {
    await faults.shell('echo older > which; rm -f late')
    await faults.request('POST', '/checkpoints', { name: 'older' })
    const before = new Set(faults.store.objects.keys())
    await faults.shell('echo newer > which; head -c 3000000 /dev/urandom > much')
    await faults.request('POST', '/stop')
    const added = [...faults.store.objects].filter(([key]) => !before.has(key))
    const [first] = added
    if (first === undefined) throw new Error('The stop has saved nothing')
    const [key, { bytes, sha256 }] = first
    const damage = (at: number): void => {
      const damaged = Uint8Array.from(bytes)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      faults.store.objects.set(key, { bytes: damaged, sha256 })
    }
    // In the content of a file, in the table at the end, and all of it.
    for (const change of [
      () => damage(1000),
      () => damage(bytes.byteLength - 40),
      () => faults.store.objects.delete(key),
    ]) {
      change()
      faults.loseDisk()
      const refused = await faults.fetch('POST', '/exec', { cmd: 'cat', args: ['which'] })
      expect(await refused.json()).toMatchObject({
        error: { code: 'version_damaged', message: expect.stringContaining('Restore an older one') },
      })
    }
    await faults.request('POST', '/checkpoints/older/restore')
    const script = 'cat which; test -e much || echo gone; cd now/ && sha256sum --status -c sum && echo whole'
    expect(await faults.shell(script)).toBe('older\ngone\nwhole\n')

    // A sandbox that runs keeps the files that it has when a user asks for the other version.
    const listed = (await (await faults.fetch('GET', '/checkpoints')).json()) as {
      readonly versions: readonly { readonly version: number; readonly addedBytes: number }[]
    }
    const damagedVersion = listed.versions.find(({ addedBytes }) => addedBytes > 3_000_000)?.version
    const refused = await faults.fetch('POST', `/checkpoints/${damagedVersion}/restore`)
    expect(await refused.json()).toMatchObject({ error: { code: 'version_damaged' } })
    expect(await faults.shell(script)).toBe('older\ngone\nwhole\n')
  },
  TIMEOUT_MS,
)

test('no credential of the server is among the saved files', async () => {
  const { token } = faults.deployment.host
  // In two parts, so that the search does not find itself.
  const split = (secret: string): string => `-e ${secret.slice(0, 8)}''${secret.slice(8)}`
  const patterns = [split('canary-of-the-s3-secret'), split(token)].join(' ')
  const found = await faults.shell(`grep -rlF ${patterns} /workspace ~ 2>/dev/null | wc -l`)
  expect(found).toBe('0\n')
})
