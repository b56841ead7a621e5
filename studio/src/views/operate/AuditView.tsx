export default function AuditView() {
  return null;
}
