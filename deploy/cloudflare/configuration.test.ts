import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { describeWorkerd } from '../../apps/host/src/control/workerd-config.ts'
import { limitsSchema } from '../../apps/control/src/limits.ts'
import { configure, readWranglerFile } from './configuration.ts'
import { decodeSettings, type DeploySettings } from './settings.ts'

const URL_OF_IT = 'https://sandwire.example.workers.dev'

describe('wrangler.jsonc', () => {
  test('pins the same platform version as a single machine', async () => {
    const machine = describeWorkerd({
      script: '',
      control: {
        mode: 'local',
        issuers: [],
        publicOrigins: [],
        hosts: [],
        provider: 'host',
        sleepAfterMs: 1,
        alarmMs: 1,
        maxSandboxes: 1,
        machine: { memoryBytes: 1, milliCpus: 1, pids: 1, diskBytes: 1, diskOvercommit: 1 },
        workspaceMode: 'sandboxes',
      },
      keys: {
        signingKey: '',
        idKey: '',
        sessionTokenSecret: '',
      },
      secrets: {},
      issuerNetwork: {
        isOpen: false,
        privateAddresses: [],
      },
      upstreamNetwork: {
        isOpen: false,
        privateAddresses: [],
      },
      credentials: {},
      gates: [],
      listen: [],
      hostSocket: '',
      slots: [],
      objects: '',
      workbench: '',
    })
    const worker = machine.services?.flatMap((service) => ('worker' in service ? [service.worker] : []))[0]
    const file = await readWranglerFile()
    expect(file).toMatchObject({
      compatibility_date: worker?.compatibilityDate ?? 'none',
      compatibility_flags: worker?.compatibilityFlags ?? [],
    })
    const classes = worker?.durableObjectNamespaces?.map(({ className }) => className)
    const migrations: unknown = Reflect.get(file, 'migrations')
    expect([...(JSON.stringify(migrations).match(/\b[A-Z]\w+(?=")/g) ?? [])]).toEqual(
      (classes ?? []).map(String),
    )
  })

  test('has the same attach rate limit per address as control', async () => {
    const { attachesPerMinutePerAddress } = limitsSchema.parse({})
    expect(Reflect.get(await readWranglerFile(), 'ratelimits')).toMatchObject([
      { name: 'RATE_LIMIT', simple: { limit: attachesPerMinutePerAddress, period: 60 } },
    ])
  })

  test('serves workbench files only through the Worker', async () => {
    const { assets } = configure(await readWranglerFile(), { url: URL_OF_IT })
    expect(assets).toMatchObject({
      binding: 'ASSETS',
      run_worker_first: true,
      // Files are served at their own paths, without redirects.
      html_handling: 'none',
      not_found_handling: 'none',
    })
    expect(isAbsolute(assets.directory)).toBe(true)
  })

  test('names files that exist', async () => {
    const { main, containers } = configure(await readWranglerFile(), { url: URL_OF_IT })
    for (const file of [main, ...containers.map(({ image }) => image)]) expect(existsSync(file)).toBe(true)
  })
})

describe('the settings of a deployment', () => {
  test('set the address, the sizes and the settings of control', async () => {
    const control = { limits: { outputBytesPerSecond: 1_000 } }
    const made = configure(await readWranglerFile(), {
      url: 'https://shells.example.com',
      name: 'shells',
      control,
      instanceType: 'standard-1',
      maxInstances: 7,
      bucket: 'other-files',
      base: 'debian:trixie-slim',
    })
    expect(made).toMatchObject({
      name: 'shells',
      workers_dev: false,
      routes: [{ pattern: 'shells.example.com', custom_domain: true }],
      containers: [
        { instance_type: 'standard-1', max_instances: 7, image_vars: { BASE: 'debian:trixie-slim' } },
      ],
      r2_buckets: [{ bucket_name: 'other-files' }],
    })
    expect(JSON.parse(made.vars.SANDWIRE_CONFIG)).toMatchObject({
      ...control,
      mode: 'open',
      provider: 'container',
      hosts: ['shells.example.com'],
      publicOrigins: ['https://shells.example.com'],
    })
  })

  test('are refused with a list of all problems', () => {
    const bad = { url: 'http://x.example/', name: 'A', maxInstances: 0, control: { mode: 'local' }, extra: 1 }
    expect(() => decodeSettings(JSON.stringify(bad))).toThrow(
      /url: .*; name: .*; maxInstances: .*; control: expected settings of control without mode.*; extra: unknown/,
    )
    expect(() => decodeSettings('{}')).toThrow('url: expected https://HOST without a path')
    expect(decodeSettings(`{"url":"${URL_OF_IT}"}`)).toEqual({ url: URL_OF_IT })
  })

  test('are refused when the URL does not match the Worker name', async () => {
    const file = await readWranglerFile()
    const url = 'https://sandwire.example.workers.dev'
    expect(() => configure(file, { url, name: 'shells' })).toThrow('https://shells.example.workers.dev')
    expect(configure(file, { url: 'https://shells.example.workers.dev', name: 'shells' }).workers_dev).toBe(
      true,
    )
  })

  test('let as many sandboxes run as there are instances, unless a lower ceiling is set', async () => {
    const file = await readWranglerFile()
    const runningOf = (settings: Partial<DeploySettings>): unknown =>
      Reflect.get(
        JSON.parse(configure(file, { url: URL_OF_IT, ...settings }).vars.SANDWIRE_CONFIG),
        'ceilings',
      )
    expect(runningOf({})).toEqual({ machine: { running: 100 } })
    expect(runningOf({ maxInstances: 7 })).toEqual({ machine: { running: 7 } })
    const control = { ceilings: { machine: { running: 3 }, account: { sandboxes: 2 } } }
    expect(runningOf({ control })).toEqual(control.ceilings)
  })

  test('are refused when control would refuse them', async () => {
    const file = await readWranglerFile()
    const control = { sleepAfterMs: 'soon' }
    expect(() => configure(file, { url: URL_OF_IT, control })).toThrow('sleepAfterMs')
  })
})
