import {
  type CreateParameters,
  createParametersOf,
  type Dialect,
  parseAttachQuery,
  type Role,
  ROLES,
  SandwireError,
} from '@sandwire/protocol'

/** A decoded attach request. */
export type AttachParameters =
  | {
      readonly kind: 'create'
      readonly createId: string | undefined
      readonly create: CreateParameters
      readonly rights: AttachRights
    }
  | { readonly kind: 'join'; readonly session: string; readonly rights: AttachRights }

export interface AttachRights {
  /** Undefined for the highest role that the credential allows. */
  readonly role: Role | undefined
  readonly take: boolean
  readonly cols: number
  readonly rows: number
}

/** Decodes the query of an upgrade; throws `bad_request` or `needs_v1`. */
export function parseAttach(query: URLSearchParams, dialect: Dialect): AttachParameters {
  const parsed = parseAttachQuery(query, dialect)
  const { values } = parsed
  const rights: AttachRights = {
    role: ROLES.find((role) => role === values.get('role')),
    take: values.get('take') === '1',
    cols: Number(values.get('cols') ?? 80),
    rows: Number(values.get('rows') ?? 24),
  }
  const session = values.get('session')
  if (session !== undefined) return { kind: 'join', session: checkSessionId(session), rights }
  const createId = values.get('createId')
  return { kind: 'create', createId, rights, create: createParametersOf(parsed, dialect) }
}

/** Ids are compared byte by byte, so only their canonical form is accepted. */
export function checkSessionId(session: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(session))
    throw new SandwireError('session_not_found', 'No session has this id')
  return session
}
