export function ApprovalsPage() {
  return <p className="p-6">ApprovalsPage</p>
}
