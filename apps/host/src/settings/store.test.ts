import { describe, expect, test } from 'bun:test'
import { type Environment } from './input.ts'
import { validateBackupHours, validateStore } from './store.ts'

const KEYS = { awsAccessKeyId: 'key', awsSecretAccessKey: 'canary-secret' }

function validate(env: Environment, secrets: object = KEYS) {
  const problems: string[] = []
  const store = validateStore(env, { dataFolder: '/data', secrets }, problems)
  return { store, problems }
}

test('SANDWIRE_BACKUP_HOURS is a day by default, and a whole number', () => {
  const problems: string[] = []
  expect(validateBackupHours({}, problems)).toBe(24)
  expect(validateBackupHours({ SANDWIRE_BACKUP_HOURS: '0' }, problems)).toBe(0)
  expect(problems).toEqual([])
  for (const text of ['-1', '1.5', 'daily', '9999'])
    validateBackupHours({ SANDWIRE_BACKUP_HOURS: text }, problems)
  expect(problems).toHaveLength(4)
})

describe('SANDWIRE_STORE', () => {
  test('is a folder of the data folder by default, another folder, or none', () => {
    expect(validate({})).toEqual({ store: { folder: '/data/store' }, problems: [] })
    expect(validate({ SANDWIRE_STORE: '/other//disk' })).toEqual({
      store: { folder: '/other/disk' },
      problems: [],
    })
    expect(validate({ SANDWIRE_STORE: 'none' })).toEqual({ store: undefined, problems: [] })
  })

  test('is a bucket of AWS, or of the service at the endpoint', () => {
    expect(validate({ SANDWIRE_STORE: 's3://files', AWS_REGION: 'eu-west-1' }).store).toEqual({
      s3: {
        endpoint: 'https://s3.eu-west-1.amazonaws.com',
        region: 'eu-west-1',
        bucket: 'files',
        prefix: '',
      },
    })
    const env = { SANDWIRE_STORE: 's3://files/a/b/', AWS_ENDPOINT_URL: 'https://minio.example:9000/' }
    expect(validate(env)).toEqual({
      store: {
        s3: { endpoint: 'https://minio.example:9000', region: 'us-east-1', bucket: 'files', prefix: 'a/b' },
      },
      problems: [],
    })
  })

  test.each([
    [{ SANDWIRE_STORE: 'relative' }, 'absolute folder'],
    [{ SANDWIRE_STORE: 's3://' }, 'give s3://BUCKET'],
    [{ SANDWIRE_STORE: 's3://Files' }, 'give s3://BUCKET'],
    [{ SANDWIRE_STORE: 's3://files/../other' }, 'give s3://BUCKET'],
    [{ SANDWIRE_STORE: 's3://files/a?b' }, 'give s3://BUCKET'],
    [{ SANDWIRE_STORE: 's3://files', AWS_REGION: 'a/b' }, 'AWS_REGION'],
    [{ SANDWIRE_STORE: 's3://files', AWS_ENDPOINT_URL_S3: 'http://minio.example' }, 'https URL'],
    [{ SANDWIRE_STORE: 's3://files', AWS_ENDPOINT_URL_S3: 'https://minio.example/path' }, 'https URL'],
  ])('refuses %j', (env, problem) => {
    const { store, problems } = validate(env)
    expect(store).toBeUndefined()
    expect(problems[0]).toContain(problem)
    expect(problems.join()).not.toContain('canary')
  })

  test('needs an access key for a bucket', () => {
    expect(validate({ SANDWIRE_STORE: 's3://files' }, { awsAccessKeyId: 'key' }).problems).toEqual([
      expect.stringContaining('AWS_SECRET_ACCESS_KEY'),
    ])
  })
})
