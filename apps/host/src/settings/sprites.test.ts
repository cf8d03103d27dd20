import { expect, test } from 'bun:test'
import { validateSprites } from './sprites.ts'

const CONTEXT = { hasWorkspace: false, hasOtherUsers: false, secrets: { spritesApiToken: 'token' } }

function validate(env: Record<string, string>, over: Partial<typeof CONTEXT> = {}) {
  const problems: string[] = []
  return { sprites: validateSprites(env, { ...CONTEXT, ...over }, problems), problems }
}

test('a named sprite implies the provider, with defaults for everything else', () => {
  expect(validate({ SPRITES_SPRITE_NAME: 'dev' })).toEqual({
    sprites: {
      baseUrl: 'https://api.sprites.dev',
      spriteName: 'dev',
      service: { host: 'localhost', port: 8080, path: '' },
    },
    problems: [],
  })
  expect(validate({}).sprites).toBeUndefined()
  expect(validate({ SPRITES_SPRITE_NAME: 'dev', SANDWIRE_PROVIDER: 'host' }).sprites).toBeUndefined()
})

test('sprites of their own need a program with its hash', () => {
  const url = 'https://files.example/sandboxd'
  const sha256 = 'a'.repeat(64)
  const env = { SANDWIRE_PROVIDER: 'sprites', SPRITES_SANDBOXD_URL: url, SPRITES_SANDBOXD_SHA256: sha256 }
  expect(validate(env)).toMatchObject({ sprites: { program: { url, sha256 } }, problems: [] })
  expect(validate({ SANDWIRE_PROVIDER: 'sprites' }).problems.join()).toContain('SPRITES_SANDBOXD_URL')
})

test('several accounts cannot share one sprite', () => {
  const { problems } = validate({ SPRITES_SPRITE_NAME: 'dev' }, { hasOtherUsers: true })
  expect(problems.join()).toContain('several accounts cannot share')
})

test('every invalid setting is reported, and the token never', () => {
  const env = {
    SPRITES_SPRITE_NAME: '../dev',
    SPRITES_BASE_URL: 'http://api.example/v1',
    SPRITES_WORKSPACE_SERVICE_HOST: '169.254.169.254',
    SPRITES_WORKSPACE_SERVICE_PORT: '0',
    SPRITES_WORKSPACE_SERVICE_PATH: '/a b',
  }
  const { problems } = validate(env, { secrets: { spritesApiToken: 'secret' }, hasWorkspace: true })
  for (const name of Object.keys(env)) expect(problems.join('\n')).toContain(`${name} is`)
  expect(problems).toHaveLength(6)
  expect(problems.join()).not.toContain('secret')
  const missing = { SPRITES_SPRITE_NAME: 'dev' }
  expect(validateSprites(missing, { ...CONTEXT, secrets: {} }, problems)).toBeDefined()
  expect(problems.at(-1)).toContain('SPRITES_API_TOKEN')
})
