export default function BudgetsView() {
  return null;
}
