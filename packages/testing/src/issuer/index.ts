export {
  type IssuerOptions,
  type IssuerSettings,
  type MintOptions,
  startIssuer,
  type TestIssuer,
} from './issuer.ts'
export { TEST_USERS, type TestUser, SANDBOX_SCOPES, type SandboxScope } from './users.ts'
