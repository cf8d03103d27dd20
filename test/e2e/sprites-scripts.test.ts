import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { CLAUDE_PROFILE_TEXT, SHELL_PROFILE_TEXT } from '../../apps/control/src/providers/sprites/layout.ts'
import { type FakeSprites, findFakeSpritesProblem, openFakeSprites } from '@sandwire/testing/fake-sprites'

const SCRIPTS = path.resolve(import.meta.dir, '../../deploy/sandbox')
const problem = findFakeSpritesProblem()

describe.skipIf(problem !== undefined)(
  `the scripts for a sprite${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let api: FakeSprites
    const folder = mkdtempSync(path.join(tmpdir(), 'sprites-scripts-'))
    const program = path.join(folder, 'sandboxd')
    beforeAll(async () => {
      api = await openFakeSprites({ sprites: ['dev'] })
      writeFileSync(program, `#!/bin/sh\necho 'sandboxd ${SOFTWARE_VERSION}'\n`)
      writeFileSync(path.join(folder, 'rg'), 'ripgrep')
    })
    afterAll(async () => {
      await api[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    })

    const run = async (script: string, args: readonly string[] = [], env: Record<string, string> = {}) => {
      const child = Bun.spawn([path.join(SCRIPTS, script), ...args], {
        stdout: 'pipe',
        stderr: 'pipe',
        env: {
          PATH: process.env['PATH'],
          SPRITES_BASE_URL: api.url,
          SPRITES_SPRITE_NAME: 'dev',
          SPRITES_API_TOKEN: api.token,
          ...env,
        },
      })
      const [out, error] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ])
      return { code: await child.exited, out, error }
    }

    test('fail on a sprite without the program', async () => {
      expect(await run('smoke_check.sh')).toMatchObject({ code: 1 })
    })

    test('install the program once, and pass the smoke check', async () => {
      const first = await run('deploy_workspace_service.sh', [program])
      expect(first).toMatchObject({ code: 0, error: '' })
      expect(first.out).toContain('was installed')
      const installed = path.join(api.sprite('dev').root, 'srv/workspace-api/sandboxd')
      expect(readFileSync(installed, 'utf8')).toBe(readFileSync(program, 'utf8'))
      const search = path.join(api.sprite('dev').root, 'srv/workspace-api/rg')
      expect(readFileSync(search, 'utf8')).toBe('ripgrep')
      const before = [installed, search].map((file) => statSync(file).ino)
      const again = await run('deploy_workspace_service.sh', [program])
      expect(again.out).toContain('sandboxd is up to date\nrg is up to date\n')
      expect([installed, search].map((file) => statSync(file).ino)).toEqual(before)
      const checked = await run('smoke_check.sh')
      expect(checked).toMatchObject({ code: 0, error: '' })
      expect(checked.out).toContain('exec       /home/sprite/workspace\nattach     attached\nclaude     ')
      expect(await run('restart_workspace_service.sh')).toMatchObject({ code: 0 })
    })

    test('write the profiles that control writes where there are none', () => {
      const profiles = path.join(api.sprite('dev').root, 'srv/workspace-api/profiles')
      expect(readFileSync(path.join(profiles, 'shell'), 'utf8')).toBe(SHELL_PROFILE_TEXT)
      expect(readFileSync(path.join(profiles, 'claude'), 'utf8')).toBe(CLAUDE_PROFILE_TEXT)
    })

    test('find Claude Code where the owner of the sprite says', async () => {
      const { root } = api.sprite('dev')
      const files = {
        '.auth/claude.env': 'PATH="$HOME/agents:$PATH"\nMARK=7\n',
        'agents/claude': '#!/bin/sh\necho "$MARK.0 $1"\n',
      }
      for (const [name, text] of Object.entries(files)) {
        const file = path.join(root, 'home/sprite', name)
        mkdirSync(path.dirname(file), { recursive: true })
        writeFileSync(file, text, { mode: 0o755 })
      }
      expect((await run('smoke_check.sh')).out).toContain('claude     7.0 --version\n')
    })

    test('refuse a program of another version', async () => {
      writeFileSync(program, "#!/bin/sh\necho 'sandboxd 0.0.0'\n")
      await run('deploy_workspace_service.sh', [program])
      const checked = await run('smoke_check.sh')
      expect(checked.code).toBe(1)
      expect(checked.error).toContain('expected "sandboxd')
    })

    test('refuse a service folder inside the workspace', async () => {
      const { root } = api.sprite('dev')
      const service = path.join(root, 'srv/workspace-api')
      renameSync(service, path.join(root, 'srv/before'))
      symlinkSync('/home/sprite/workspace/api', service)
      const refused = await run('deploy_workspace_service.sh', [program])
      expect(refused.code).toBe(1)
      expect(refused.error).toContain('inside the workspace')
    })

    test('fail with the reason, and never print the token', async () => {
      const outcomes = await Promise.all([
        run('smoke_check.sh', [], { SPRITES_API_TOKEN: 'wrong' }),
        run('smoke_check.sh', [], { SPRITES_BASE_URL: 'http://127.0.0.1:9' }),
        run('smoke_check.sh', [], { SPRITES_SPRITE_NAME: 'none' }),
        run('deploy_workspace_service.sh', ['/none']),
      ])
      expect(outcomes.map(({ code }) => code)).toEqual([1, 1, 1, 1])
      const texts = outcomes.map(({ error }) => error)
      expect(texts[0]).toContain('rejects the token')
      expect(texts[1]).toContain('Cannot reach')
      expect(texts[2]).toContain('404')
      expect(JSON.stringify(outcomes)).not.toContain(api.token)
    })
  },
)
