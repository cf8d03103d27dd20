import { describe, expect, test } from 'bun:test'
import { validateCredentialSettings } from '../credentials/credential-settings.ts'
import { validateRunSettings } from './run-settings.ts'

const CREDENTIALS = validateCredentialSettings(
  {
    providers: [
      {
        id: 'local',
        api: 'openai',
        baseUrl: 'http://127.0.0.1:11434/v1',
        secret: 'LOCAL_KEY',
        prices: { '*': { input: 0, output: 0 } },
      },
    ],
  },
  [],
)
const GOOSE = { name: 'goose', program: 'goose', args: ['acp'], env: { OPENAI_HOST: '{gateway}' } }
const LOCAL = { provider: 'local', model: 'qwen3' }

function problemsOf(raw: unknown): readonly string[] {
  const problems: string[] = []
  validateRunSettings(raw, CREDENTIALS, problems)
  return problems
}

describe('validateRunSettings', () => {
  test('has defaults', () => {
    const settings = validateRunSettings({}, CREDENTIALS, [])
    expect(settings).toMatchObject({ concurrent: 8, kept: 1_000, budgetUsd: 10, agents: [], providers: {} })
    expect(settings.model).toBeUndefined()
  })

  test('accepts every setting', () => {
    const all = {
      concurrent: 1,
      queued: 0,
      perMinute: 0,
      kept: 1,
      keepDays: 1,
      model: 'claude-opus-5-5',
      models: ['claude-*'],
      wallClockSeconds: 60,
      idleSeconds: 60,
      approvalSeconds: 60,
      budgetUsd: 0.5,
      turns: 10,
      agents: [{ ...GOOSE, title: 'Goose' }],
      providers: {
        opencode: LOCAL,
        goose: LOCAL,
        claude: { provider: 'anthropic', model: 'claude-opus-5-5' },
      },
      bindingAccount: 'local',
    }
    expect(problemsOf(all)).toEqual([])
    expect(validateRunSettings(all, CREDENTIALS, [])).toMatchObject(all)
  })

  test.each([
    [[], 'runs: expected an object'],
    [{ budgetUsd: 0 }, 'runs: "budgetUsd" must be US dollars from 0.01 to 100000'],
    [{ agents: [{ name: 'goose' }] }, 'runs.agents[0]: "program" must be the path of a program'],
    [{ agents: [GOOSE, GOOSE] }, 'runs.agents: "goose" is defined twice'],
    [{ agents: [{ ...GOOSE, name: 'claude' }] }, 'runs.agents: "claude" is defined twice'],
    [
      { providers: { opencode: { provider: 'local' } } },
      'runs.providers.opencode: "model" must be the name of a model',
    ],
    [{ providers: { goose: LOCAL } }, 'runs.providers: "goose" is not an agent'],
    [
      { providers: { opencode: { ...LOCAL, provider: 'other' } } },
      'runs.providers.opencode: "other" is not in "credentials.providers"',
    ],
    [
      { providers: { claude: LOCAL } },
      'runs.providers.claude: the agent cannot use a provider with "api": "openai"',
    ],
  ])('refuses %j', (raw, problem) => {
    expect(problemsOf(raw)).toEqual([problem])
  })
})
