import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import type { ToolPlan } from '../tool.ts'
import { readListing } from './git-command.ts'
import { createScene, type Scene } from './git-workspace.fixture.ts'

type Spoil = (plan: ToolPlan) => ToolPlan

/** Something that makes git start a program, and what keeps it from doing so. */
interface Planted {
  readonly name: string
  /** Plants the program at a path, which leaves a mark when it is started. */
  readonly plant: (scene: Scene, program: string) => void
  readonly without: Spoil
}

function withoutSettings(isMeant: (key: string) => boolean): Spoil {
  return (plan) => {
    const env = Object.entries(plan.env ?? {}).map(([name, value]) =>
      name.startsWith('GIT_CONFIG_KEY_') && isMeant(value) ? [name, 'sandwire.nothing'] : [name, value],
    )
    return { ...plan, env: Object.fromEntries(env) }
  }
}

const withoutSetting = (key: string): Spoil => withoutSettings((name) => name === key)

function withoutVariable(name: string): Spoil {
  return ({ env = {}, ...plan }) => {
    const { [name]: _, ...rest } = env
    return { ...plan, env: rest }
  }
}

function withoutArgument(argument: string): Spoil {
  return (plan) => {
    const [program, ...args] = plan.argv
    return { ...plan, argv: [program, ...args.filter((arg) => arg !== argument)] }
  }
}

function plantHooks(folder: string, program: string): void {
  mkdirSync(folder, { recursive: true })
  const names = [
    'pre-commit',
    'prepare-commit-msg',
    'commit-msg',
    'post-commit',
    'post-checkout',
    'post-rewrite',
  ]
  for (const name of [
    ...names,
    'post-index-change',
    'reference-transaction',
    'pre-auto-gc',
    'fsmonitor-watchman',
  ]) {
    writeFileSync(join(folder, name), `#!/bin/sh\nexec ${program}\n`)
    chmodSync(join(folder, name), 0o755)
  }
}

function plantFilter(scene: Scene, filter: string, setting: string, program: string): void {
  scene.write('.gitattributes', `* filter=${filter}\n`)
  scene.git('config', `filter.${filter}.${setting}`, program)
}

/** A remote to ask for objects that are missing, such as the first version of the file. */
function plantRemote(scene: Scene, settings: Readonly<Record<string, string>>): void {
  const blob = scene.git('rev-parse', 'HEAD~1:file').trim()
  rmSync(join(scene.root, '.git/objects', blob.slice(0, 2), blob.slice(2)))
  const partial = { 'core.repositoryFormatVersion': '1', 'extensions.partialClone': 'origin' }
  for (const [key, value] of Object.entries({ ...partial, 'remote.origin.promisor': 'true', ...settings }))
    scene.git('config', key, value)
}

/** A commit that claims to be signed. */
function plantSignature(scene: Scene): void {
  const text = scene.git('cat-file', 'commit', 'HEAD')
  const signed = text.replace(
    '\n\n',
    '\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n',
  )
  writeFileSync(join(scene.home, 'signed'), signed)
  const oid = scene.git('hash-object', '-t', 'commit', '-w', join(scene.home, 'signed')).trim()
  scene.git('update-ref', 'HEAD', oid)
}

function plantSubmodule(scene: Scene, setting: 'clean' | 'smudge', program: string): void {
  mkdirSync(join(scene.root, 'origin'))
  scene.gitIn('origin', 'init', '--quiet')
  writeFileSync(join(scene.root, 'origin/inner'), 'one')
  scene.gitIn('origin', 'add', '.')
  scene.gitIn('origin', 'commit', '--quiet', '--message', 'inner')
  scene.git('submodule', '--quiet', 'add', './origin', 'module')
  scene.git('config', '--file', '.gitmodules', 'submodule.module.ignore', 'none')
  scene.git('commit', '--quiet', '--message', 'module')
  writeFileSync(join(scene.root, 'module/inner'), 'two')
  writeFileSync(join(scene.root, 'module/.gitattributes'), '* filter=z\n')
  scene.gitIn('module', 'config', `filter.z.${setting}`, program)
}

/** Neither overridden, nor asked for before files are brought back. */
const FILTERS: Spoil = (plan) => {
  const [program, ...args] = plan.argv
  const unasked = args.map((arg) => (arg === 'filter' ? 'nothing' : arg))
  return withoutSettings((key) => key.startsWith('filter.'))({ ...plan, argv: [program, ...unasked] })
}

const PLANTED: readonly Planted[] = [
  {
    name: 'core.fsmonitor',
    plant: (scene, program) => scene.git('config', 'core.fsmonitor', program),
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'core.fsmonitor of the user',
    plant: (scene, program) => scene.git('config', '--global', 'core.fsmonitor', program),
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'core.fsmonitor in a file that is included',
    plant: (scene, program) => {
      scene.write('included', `[core]\nfsmonitor = ${program}\n`)
      scene.git('config', 'include.path', '../included')
    },
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'hooks',
    plant: (scene, program) => plantHooks(join(scene.root, '.git/hooks'), program),
    without: withoutSetting('core.hooksPath'),
  },
  {
    name: 'core.hooksPath',
    plant: (scene, program) => {
      plantHooks(join(scene.root, 'planted'), program)
      scene.git('config', 'core.hooksPath', join(scene.root, 'planted'))
    },
    without: withoutSetting('core.hooksPath'),
  },
  {
    name: 'diff.external',
    plant: (scene, program) => scene.git('config', 'diff.external', program),
    without: withoutArgument('--no-ext-diff'),
  },
  {
    name: 'the command of a diff driver',
    plant: (scene, program) => {
      scene.write('.gitattributes', '* diff=z\n')
      scene.git('config', 'diff.z.command', program)
    },
    without: withoutArgument('--no-ext-diff'),
  },
  {
    name: 'the textconv of a diff driver',
    plant: (scene, program) => {
      scene.write('.gitattributes', '* diff=z\n')
      scene.git('config', 'diff.z.textconv', program)
    },
    without: withoutArgument('--no-textconv'),
  },
  ...['clean', 'smudge', 'process'].map((setting) => ({
    name: `filter.z.${setting}`,
    plant: (scene: Scene, program: string) => plantFilter(scene, 'z', setting, program),
    without: FILTERS,
  })),
  ...['a=b.c', 'Zz.clean', '-c', 'a"b', '🦜'].map((filter) => ({
    name: `a filter with the name ${filter}`,
    plant: (scene: Scene, program: string) => plantFilter(scene, filter, 'clean', program),
    without: FILTERS,
  })),
  {
    name: 'a filter in the attributes of the repository itself',
    plant: (scene, program) => {
      mkdirSync(join(scene.root, '.git/info'), { recursive: true })
      scene.write('.git/info/attributes', '* filter=z\n')
      scene.git('config', 'filter.z.clean', program)
    },
    without: FILTERS,
  },
  {
    name: 'gpg.program for commits',
    plant: (scene, program) => {
      scene.git('config', 'gpg.program', program)
      scene.git('config', 'commit.gpgSign', 'true')
    },
    without: withoutSetting('commit.gpgSign'),
  },
  {
    name: 'gpg.program for the log',
    plant: (scene, program) => {
      plantSignature(scene)
      scene.git('config', 'gpg.program', program)
      scene.git('config', 'log.showSignature', 'true')
    },
    without: withoutSetting('log.showSignature'),
  },
  {
    name: 'a remote with ext::',
    plant: (scene, program) =>
      plantRemote(scene, { 'remote.origin.url': `ext::${program}`, 'protocol.ext.allow': 'always' }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'core.sshCommand',
    plant: (scene, program) =>
      plantRemote(scene, { 'remote.origin.url': 'ssh://example.test/x', 'core.sshCommand': program }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'remote.origin.uploadpack',
    plant: (scene, program) =>
      plantRemote(scene, { 'remote.origin.url': scene.root, 'remote.origin.uploadpack': program }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'a filter in a submodule',
    plant: (scene, program) => plantSubmodule(scene, 'clean', program),
    without: withoutArgument('--ignore-submodules=dirty'),
  },
  {
    name: 'a filter in a submodule that is to be followed',
    plant: (scene, program) => {
      plantSubmodule(scene, 'smudge', program)
      scene.git('config', 'submodule.recurse', 'true')
    },
    without: withoutSetting('submodule.recurse'),
  },
]

/** Asks every route for something that it does; the last ones change what the others need. */
async function* askEverything(scene: Scene): AsyncGenerator<unknown, void> {
  const asks = [
    'git/status',
    'compat/git/status',
    'compat/git/diff?path=file',
    'compat/git/show?path=file',
    'git/diff',
    'git/diff?path=file',
    'git/diff?staged=1',
    'git/diff?from=HEAD',
    'git/diff?from=HEAD~1&to=HEAD',
    'git/diff?to=HEAD',
    'git/diff?path=file&old=other',
    'git/show?path=file',
    'git/show?path=file&ref=HEAD~1',
    'git/log',
    'git/log?path=file',
    'git/branches',
  ]
  for (const ask of asks) yield scene.get(ask)
  yield scene.post('git/unstage', { paths: ['file'] })
  yield scene.post('git/discard', { paths: ['other'] })
  yield scene.post('git/discard', { paths: ['module'] })
  yield scene.post('git/discard', { paths: ['new'], untracked: true })
  yield scene.post('git/stage', { paths: ['.'] })
  yield scene.post('git/stage', { paths: ['file'] })
  yield scene.post('git/stage', { paths: ['module'] })
  yield scene.post('git/commit', { message: 'next' })
  yield scene.post('git/commit', { message: 'nothing' })
  yield scene.post('git/commit', { message: 'again', amend: true })
}

/** A repository with two commits and changes of every sort, and a program that leaves a mark. */
function createPlantedScene(plant: Planted['plant'], spoil?: Spoil): Scene & { isMarked(): boolean } {
  const scene = createScene(spoil === undefined ? {} : { spoil })
  for (const content of ['one\n', 'two\n']) {
    scene.write('file', content)
    scene.write('other', content)
    scene.git('add', '.')
    scene.git('commit', '--quiet', '--message', content)
  }
  const [program, mark] = [join(scene.home, 'program'), join(scene.home, 'mark')]
  writeFileSync(program, `#!/bin/sh\ntouch ${mark}\n`)
  chmodSync(program, 0o755)
  plant(scene, program)
  // Whatever planting itself started is not what is looked for.
  rmSync(mark, { force: true })
  for (const path of ['file', 'other', 'new']) scene.write(path, 'three\n')
  return { ...scene, isMarked: () => existsSync(mark) }
}

test.each([...PLANTED])('no route starts $name (threat T19)', async ({ plant }) => {
  using scene = createPlantedScene(plant)
  for await (const _ of askEverything(scene)) expect(scene.isMarked()).toBe(false)
})

test.each([...PLANTED])(
  '$name would be started without what keeps it from it',
  async ({ plant, without }) => {
    using scene = createPlantedScene(plant, without)
    for await (const _ of askEverything(scene)) if (scene.isMarked()) return
    expect(scene.isMarked()).toBe(true)
  },
)

test('what git never starts here is not started either (threat T19)', async () => {
  using scene = createPlantedScene(({ git }, program) => {
    const settings = ['core.pager', 'pager.status', 'pager.diff', 'pager.log', 'pager.show', 'core.editor']
    const more = ['sequence.editor', 'core.askPass', 'credential.helper', 'core.gitProxy', 'gpg.ssh.program']
    const tools = [
      'alias.status',
      'alias.diff',
      'alias.rev-parse',
      'merge.z.driver',
      'interactive.diffFilter',
    ]
    for (const key of [...settings, ...more, ...tools, 'core.alternateRefsCommand'])
      git('config', key, `!${program}`)
    git('config', 'trailer.z.command', program)
    git('config', 'uploadpack.packObjectsHook', program)
  })
  for await (const _ of askEverything(scene)) expect(scene.isMarked()).toBe(false)
})

test('a file that a filter changes is neither staged nor put back as it is', async () => {
  using scene = createPlantedScene((planted, program) => plantFilter(planted, 'z', 'clean', program))
  for (const [route, message] of [
    ['git/stage', /filter '?z'? failed/],
    ['git/discard', /a filter would have to/],
  ] as const)
    expect(await scene.post(route, { paths: ['file'] })).toMatchObject({
      status: 409,
      body: { error: { code: 'git_failed', message: expect.stringMatching(message) } },
    })
})

test('a filter whose name no environment holds keeps git from being used (threat T19)', async () => {
  using scene = createPlantedScene((planted, program) => {
    planted.write('.gitattributes', Buffer.from('* filter=\xff\n', 'latin1'))
    planted.write('.git/config', Buffer.from(`[filter "\xff"]\nclean = ${program}\n`, 'latin1'))
  })
  for await (const answer of askEverything(scene)) expect(answer).not.toMatchObject({ status: 500 })
  expect(scene.isMarked()).toBe(false)
  expect(await scene.get('git/status')).toMatchObject({ body: { error: { code: 'git_failed' } } })
})

test('hooks that are settings, and filters of the machine, are found by their names', () => {
  const names = [
    'sandwire.witness',
    'hook.lint.command',
    'hook.lint.event',
    'filter.lfs.process',
    'filter.x.y.clean',
  ]
  expect(readListing(names)).toEqual({ filters: ['lfs', 'x.y'], hooks: ['lint'], hasIdentity: false })
})

test('a git that takes no settings from its environment is not used (threat T19)', async () => {
  expect(() => readListing(['user.name'])).toThrow('2.31 or newer')
  using scene = createScene({ spoil: withoutVariable('GIT_CONFIG_COUNT') })
  expect(await scene.get('git/status')).toMatchObject({ body: { error: { code: 'git_failed' } } })
})

test('no commit starts to tidy up', async () => {
  const plant: Planted['plant'] = ({ git, home }) => {
    git('config', 'gc.auto', '1')
    git('config', 'gc.autoDetach', 'false')
    // Git counts the objects whose names begin with 17, as these do.
    for (const at of [1, 8, 46, 76]) {
      writeFileSync(join(home, 'object'), `object ${at}`)
      git('hash-object', '-w', join(home, 'object'))
    }
  }
  const packs = async (spoil?: Spoil): Promise<number> => {
    using scene = createPlantedScene(plant, spoil)
    await scene.post('git/stage', { paths: ['file'] })
    expect(await scene.post('git/commit', { message: 'x' })).toMatchObject({ status: 200 })
    return readdirSync(join(scene.root, '.git/objects/pack')).length
  }
  expect(await packs()).toBe(0)
  expect(await packs(withoutSetting('maintenance.auto'))).toBeGreaterThan(0)
})

test('core.worktree leads nowhere else (threat T19)', async () => {
  const plant: Planted['plant'] = (scene) => {
    mkdirSync(join(scene.home, 'elsewhere'))
    scene.git('config', 'core.worktree', join(scene.home, 'elsewhere'))
  }
  const elsewhere = async (spoil?: Spoil): Promise<readonly string[]> => {
    using scene = createPlantedScene(plant, spoil)
    await scene.post('git/discard', { paths: ['file'] })
    return readdirSync(join(scene.home, 'elsewhere'))
  }
  expect(await elsewhere()).toEqual([])
  expect(await elsewhere(withoutVariable('GIT_WORK_TREE'))).toEqual(['file'])
})

test('the .git of a folder further up is not used', async () => {
  using scene = createPlantedScene(() => undefined)
  renameSync(join(scene.root, '.git'), join(scene.root, '../.git'))
  expect(await scene.get('git/status')).toMatchObject({ body: { error: { code: 'not_a_repository' } } })
})
