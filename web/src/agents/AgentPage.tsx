export function AgentPage() {
  return <p className="p-6">AgentPage</p>
}
