(** Theorem 1: the gradient g_n = Y r_n that the modified decoder sends back, beta (88) and xi_n.

    F holds the features, tokens by classes; Ginv is the inverse of their Gram matrix, so that I - E' = Ginv. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Softmax.
From Formal.scan_and_snap Require Import Decoder.
Open Scope R_scope.

(** The entries of u_n: q_1 at n and q_0 elsewhere. *)
Definition q1 (M : nat) : R := INR M / (INR M - 1).
Definition q0 (M : nat) : R := - INR M / (INR M - 1) ^ 2.
Definition u (M n c : nat) : R := if Nat.eqb c n then q1 M else q0 M.

(** beta_nn' = -((I - E') u_n)_n', iota_n = ((I - E') u_n)_n. *)
Definition beta (M K : nat) (Ginv : nat -> nat -> R) (n n' : nat) : R := - Sum K (fun c => Ginv n' c * u M n c).
Definition iota (M K : nat) (Ginv : nat -> nat -> R) (n : nat) : R := Sum K (fun c => Ginv n c * u M n c).

(** (85) *)
Definition gamma_of (M : nat) (h : R) : R := (INR M - 1) ^ 2 * h / (INR M - 1 + exp (INR M * h)).

(** xi_n = gamma sum over n' other than n of beta_nn' f_n . f_n'. *)
Definition xi (M K : nat) (F Ginv : nat -> nat -> R) (gamma : R) (n : nat) : R :=
  gamma * Others K n (fun n' => beta M K Ginv n n' * gram M F n n').

(** Y = F (I - E') W (Theorem 5), for W with the rows of Lemma 5. *)
Definition decoder (K : nat) (F Ginv W : nat -> nat -> R) (l j : nat) : R :=
  Sum K (fun a => F l a * Sum K (fun c => Ginv a c * W c j)).

Lemma gram_sym M F a b : gram M F a b = gram M F b a.
Proof. apply Sum_ext. intros. ring. Qed.

(** The inverse of a symmetric matrix is symmetric, and an inverse from both sides. *)
Lemma inverse_sym K G Ginv : (forall a b, G a b = G b a) -> inverse_of K Ginv G ->
  forall a b, (a < K)%nat -> (b < K)%nat -> Ginv a b = Ginv b a.
Proof.
  intros S I a b La Lb.
  (* both are the entry (a, b) of Ginv^T G Ginv *)
  transitivity (Sum K (fun c => Ginv c a * Sum K (fun d => G c d * Ginv d b))).
  - rewrite (Sum_ext K _ (fun c => Sum K (fun d => Ginv c a * G c d * Ginv d b)))
      by (intros; rewrite <- Sum_scal; apply Sum_ext; intros; ring).
    rewrite Sum_swap.
    rewrite (Sum_ext K _ (fun d => kron a d * Ginv d b)).
    + now rewrite Sum_kron_r.
    + intros d Ld. rewrite Sum_scal_r. f_equal.
      rewrite (Sum_ext K _ (fun c => G d c * Ginv c a)) by (intros; rewrite (S d i); ring).
      rewrite I by assumption. apply kron_sym.
  - rewrite (Sum_ext K _ (fun c => kron c b * Ginv c a)).
    + now apply (Sum_kron K b (fun c => Ginv c a)).
    + intros c Lc. rewrite I by assumption. ring.
Qed.

Lemma inverse_left K G Ginv : (forall a b, G a b = G b a) -> inverse_of K Ginv G ->
  forall a b, (a < K)%nat -> (b < K)%nat -> Sum K (fun c => Ginv a c * G c b) = kron a b.
Proof.
  intros S I a b La Lb. rewrite kron_sym, <- (I b a Lb La). apply Sum_ext. intros c Lc.
  rewrite (inverse_sym K G Ginv S I a c La Lc), (S c b). ring.
Qed.

Section Classes.
Variables (M K : nat) (F Ginv : nat -> nat -> R).
Hypotheses (HM : (2 <= M)%nat) (HK : (K <= M)%nat) (HG : inverse_of K Ginv (gram M F)).

Let PM : 2 <= INR M.
Proof. apply (le_INR 2). exact HM. Qed.

(** With visits that differ: row c of W is that of the growth (1 + theta_c) h, and the residual of class n is
    (1 + sigma) times that of h. *)
Lemma sent_back theta sigma h n l : (n < K)%nat ->
  let W c j := (INR M - 1) * ((1 + theta c) * h) * zeta M c j in
  let r j := (1 + sigma) * ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j) in
  Sum M (fun j => decoder K F Ginv W l j * r j) =
  gamma_of M h * (1 + sigma) * Sum K (fun a => F l a * Sum K (fun c => Ginv a c * ((1 + theta c) * u M n c))).
Proof.
  intros Ln W r. unfold decoder.
  rewrite (Sum_ext M _ (fun j => Sum K (fun a => F l a * Sum K (fun c => Ginv a c * (W c j * r j))))).
  2:{ intros j _. rewrite <- Sum_scal_r. apply Sum_ext. intros a _. rewrite Rmult_assoc, <- Sum_scal_r. f_equal.
      apply Sum_ext. intros. ring. }
  rewrite Sum_swap, <- Sum_scal. apply Sum_ext. intros a _. rewrite Sum_scal.
  rewrite (Rmult_comm (F l a)), (Rmult_comm (F l a)), <- Rmult_assoc. f_equal.
  rewrite Sum_swap, <- Sum_scal. apply Sum_ext. intros c Lc. rewrite Sum_scal.
  assert (E : Sum M (fun j => W c j * r j) = gamma_of M h * (1 + sigma) * (1 + theta c) * u M n c).
  { unfold W, r.
    rewrite (Sum_ext M _ (fun j => (INR M - 1) * ((1 + theta c) * h) * ((1 + sigma) *
      ((INR M - 1) / (INR M - 1 + exp (INR M * h)))) * (zeta M c j * zeta M n j))) by (intros; ring).
    rewrite Sum_scal. fold (dot M (zeta M c) (zeta M n)). rewrite zeta_dot by (assumption || lia).
    unfold gamma_of, u, q1, q0. pose proof PM. pose proof (exp_pos (INR M * h)).
    destruct (Nat.eqb c n); field; repeat split; lra. }
  rewrite E. ring.
Qed.

(** @statement Scan and Snap: Theorem 1
    @kind clause
    @hypotheses any M >= 2, n < K <= M, any features F whose Gram matrix has an inverse (I - E' = (F^T F)^(-1)),
      any growth h, the same for every class
    @formula for Y = F (I - E') W with the rows (M - 1) h zeta_n of Lemma 5 in W: Y r_n = gamma (iota_n f_n -
      sum over n' other than n of beta_nn' f_n'), with gamma = (M - 1)^2 h/(M - 1 + exp(M h)), iota_n and
      -beta_nn' the entries of (I - E') u_n, u_n = q_1 at n and q_0 elsewhere, q_1 = M/(M - 1), q_0 = -M/(M -
      1)^2
    @note That the modified flow has this Y is Theorem 5, and is not part of it. *)
Theorem theorem1 :
  forall h n l, (n < K)%nat ->
  Sum M (fun j => decoder K F Ginv (fun c j => (INR M - 1) * h * zeta M c j) l j *
                  ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j)) =
  gamma_of M h * (iota M K Ginv n * F l n - Others K n (fun n' => beta M K Ginv n n' * F l n')).
Proof.
  intros h n l Ln. pose proof (sent_back (fun _ => 0) 0 h n l Ln) as E. cbv zeta in E.
  rewrite (Sum_ext M _ (fun j => decoder K F Ginv (fun c j => (INR M - 1) * ((1 + 0) * h) * zeta M c j) l j *
    ((1 + 0) * ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j)))).
  2:{ intros j _. f_equal; [|ring]. unfold decoder. apply Sum_ext. intros a _. f_equal.
      apply Sum_ext. intros c _. ring. }
  rewrite E, Rplus_0_r, Rmult_1_r. f_equal.
  rewrite (Others_split K n) by exact Ln. unfold iota, beta. unfold Rminus. rewrite <- Others_opp. f_equal.
  - rewrite (Rmult_comm (F l n)). f_equal. apply Sum_ext. intros. ring.
  - apply Others_ext. intros c _ _.
    rewrite (Sum_ext K _ (fun k => Ginv c k * u M n k)) by (intros; ring). ring.
Qed.

(** (86) and (88): E' = I - Ginv, visits that differ. *)
Definition E' (a b : nat) : R := kron a b - Ginv a b.

Definition beta88 (theta : nat -> R) (sigma : R) (n n' : nat) : R :=
  (1 + sigma) * (q1 M * (1 + theta n) * E' n n' +
    q0 M * (Others K n (fun k => (1 + theta k) * E' k n') - (1 + theta n'))).

Definition beta88_printed (theta : nat -> R) (sigma : R) (n n' : nat) : R :=
  (1 + sigma) * (q1 M * (1 + theta n) * E' n n' +
    q0 M * ((1 + theta n') + Others K n (fun k => (1 + theta k) * E' k n'))).

Definition iota86 (theta : nat -> R) (sigma : R) (n : nat) : R :=
  (1 + sigma) * (q1 M * (1 + theta n) * (1 - E' n n) - q0 M * Others K n (fun k => (1 + theta k) * E' k n)).

Lemma by_E theta n a : (n < K)%nat -> (a < K)%nat ->
  Sum K (fun c => Ginv a c * ((1 + theta c) * u M n c)) =
  (1 + theta a) * u M n a - (q1 M * (1 + theta n) * E' n a + q0 M * Others K n (fun k => (1 + theta k) * E' k a)).
Proof.
  intros Ln La.
  rewrite (Sum_ext K _ (fun c => kron c a * ((1 + theta c) * u M n c) - E' c a * ((1 + theta c) * u M n c))).
  2:{ intros c Lc. unfold E'. rewrite (inverse_sym K (gram M F) Ginv (gram_sym M F) HG a c La Lc). ring. }
  rewrite Sum_minus, (Sum_kron K a (fun c => (1 + theta c) * u M n c) La). f_equal.
  rewrite (Others_split K n) by exact Ln. unfold u at 1. rewrite Nat.eqb_refl. rewrite <- Others_scal.
  f_equal; [ring|]. apply Others_ext. intros c _ D. unfold u. apply Nat.eqb_neq in D. rewrite D. ring.
Qed.

(** @statement Scan and Snap: Equations 86 to 93
    @kind part
    @hypotheses as for Theorem 1, with visits that differ: row n of W is (M - 1)(1 + theta_n) h zeta_n, the
      residual (1 + sigma) times that of h
    @formula Y r_n = gamma (iota_n f_n - sum of beta_nn' f_n'), iota_n = (1 + sigma)[q_1 (1 + theta_n)(1 -
      E'_nn) - q_0 sum over k other than n of (1 + theta_k) E'_kn] (86) and beta_nn' = (1 + sigma)[q_1 (1 +
      theta_n) E'_nn' + q_0 (sum over k other than n of (1 + theta_k) E'_kn' - (1 + theta_n'))] (88, corrected)
    @note The bounds (90) to (93) are not part of it. *)
Theorem equations_86_to_88 :
  forall theta sigma h n l, (n < K)%nat ->
  Sum M (fun j => decoder K F Ginv (fun c j => (INR M - 1) * ((1 + theta c) * h) * zeta M c j) l j *
                  ((1 + sigma) * ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j))) =
  gamma_of M h * (iota86 theta sigma n * F l n - Others K n (fun n' => beta88 theta sigma n n' * F l n')).
Proof.
  intros theta sigma h n l Ln. pose proof (sent_back theta sigma h n l Ln) as E. cbv zeta in E. rewrite E.
  rewrite Rmult_assoc. f_equal. rewrite (Others_split K n) by exact Ln. rewrite by_E by assumption.
  unfold u at 1. rewrite Nat.eqb_refl. rewrite Rmult_plus_distr_l.
  rewrite <- (Others_scal K n (1 + sigma)).
  match goal with |- _ = ?a - ?b => change (a - b) with (a + - b) end. rewrite <- Others_opp. f_equal.
  - unfold iota86. ring.
  - unfold Others. apply Sum_ext. intros c Lc. destruct (Nat.eqb_spec c n) as [|D]; [reflexivity|].
    rewrite by_E by assumption. unfold u, beta88. apply Nat.eqb_neq in D. rewrite D. ring.
Qed.

(** The features are independent, so that only one list of coefficients gives g_n. *)
Lemma coefficients_unique x y : (forall l, (l < M)%nat -> Sum K (fun a => x a * F l a) = Sum K (fun a => y a * F l a)) ->
  forall a, (a < K)%nat -> x a = y a.
Proof.
  intros H a La.
  assert (G : forall b, Sum K (fun c => x c * gram M F c b) = Sum K (fun c => y c * gram M F c b)).
  { intro b. unfold gram.
    rewrite (Sum_ext K (fun c => x c * _) (fun c => Sum M (fun l => x c * F l c * F l b)))
      by (intros; rewrite <- Sum_scal; apply Sum_ext; intros; ring).
    rewrite (Sum_ext K (fun c => y c * _) (fun c => Sum M (fun l => y c * F l c * F l b)))
      by (intros; rewrite <- Sum_scal; apply Sum_ext; intros; ring).
    rewrite (Sum_swap K M (fun c l => x c * F l c * F l b)), (Sum_swap K M (fun c l => y c * F l c * F l b)).
    apply Sum_ext. intros l Ll. rewrite !Sum_scal_r. now rewrite H. }
  assert (B : forall w, Sum K (fun b => Sum K (fun c => w c * gram M F c b) * Ginv b a) = w a).
  { intro w. rewrite (Sum_ext K _ (fun b => Sum K (fun c => w c * (gram M F c b * Ginv b a))))
      by (intros; rewrite <- Sum_scal_r; apply Sum_ext; intros; ring).
    rewrite Sum_swap. rewrite (Sum_ext K _ (fun c => kron c a * w c)).
    - now apply Sum_kron.
    - intros c Lc. rewrite Sum_scal, HG by assumption. ring. }
  rewrite <- (B x), <- (B y). apply Sum_ext. intros. now rewrite G.
Qed.

(** @statement Scan and Snap: Equations 86 to 93
    @kind erratum
    @hypotheses any M >= 2, K <= M, two classes n and n', features whose Gram matrix has an inverse, h > 0;
      theta = sigma = 0
    @formula with beta_nn' of (88) as it stands in our copy, with + (1 + theta_n') in the bracket of q_0, the
      right side of (9) is not Y r_n
    @note False at every such setting, not at one only. *)
Theorem equation_88_as_printed_is_false :
  forall h n n', (n < K)%nat -> (n' < K)%nat -> n' <> n -> 0 < h ->
  exists l, (l < M)%nat /\
  Sum M (fun j => decoder K F Ginv (fun c j => (INR M - 1) * h * zeta M c j) l j *
                  ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j)) <>
  gamma_of M h * (iota86 (fun _ => 0) 0 n * F l n - Others K n (fun n' => beta88_printed (fun _ => 0) 0 n n' * F l n')).
Proof.
  intros h n n' Ln Ln' D Ph.
  pose proof (differ
    (fun l => Sum M (fun j => decoder K F Ginv (fun c j => (INR M - 1) * h * zeta M c j) l j *
                  ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j)))
    (fun l => gamma_of M h * (iota86 (fun _ => 0) 0 n * F l n -
                  Others K n (fun n' => beta88_printed (fun _ => 0) 0 n n' * F l n'))) M) as Dec. cbv beta in Dec.
  destruct Dec as [X|All]; [exact X|exfalso].
  assert (Pg : gamma_of M h <> 0).
  { unfold gamma_of. pose proof PM. pose proof (exp_pos (INR M * h)). apply Rgt_not_eq, Rdiv_lt_0_compat; [|lra].
    apply Rmult_lt_0_compat; [|lra]. apply pow_lt. lra. }
  pose proof (coefficients_unique
    (fun a => if Nat.eqb a n then iota86 (fun _ => 0) 0 n else - beta88 (fun _ => 0) 0 n a)
    (fun a => if Nat.eqb a n then iota86 (fun _ => 0) 0 n else - beta88_printed (fun _ => 0) 0 n a)) as U.
  assert (Same : forall l, (l < M)%nat ->
    Sum K (fun a => (if Nat.eqb a n then iota86 (fun _ => 0) 0 n else - beta88 (fun _ => 0) 0 n a) * F l a) =
    Sum K (fun a => (if Nat.eqb a n then iota86 (fun _ => 0) 0 n else - beta88_printed (fun _ => 0) 0 n a) * F l a)).
  { intros l L. pose proof (equations_86_to_88 (fun _ => 0) 0 h n l Ln) as E.
    rewrite (Sum_ext M _ (fun j => decoder K F Ginv (fun c j => (INR M - 1) * h * zeta M c j) l j *
                  ((INR M - 1) / (INR M - 1 + exp (INR M * h)) * zeta M n j))) in E.
    2:{ intros j _. f_equal; [|ring]. unfold decoder. apply Sum_ext. intros a _. f_equal.
        apply Sum_ext. intros c _. ring. }
    rewrite (All l L) in E. apply Rmult_eq_reg_l in E; [|exact Pg].
    rewrite (Others_split K n (fun a => (if Nat.eqb a n then _ else - beta88 _ _ n a) * F l a)) by exact Ln.
    rewrite (Others_split K n (fun a => (if Nat.eqb a n then _ else - beta88_printed _ _ n a) * F l a)) by exact Ln.
    cbv beta. rewrite Nat.eqb_refl.
    rewrite (Others_ext K n (fun a => (if Nat.eqb a n then _ else - beta88 _ _ n a) * F l a)
      (fun a => - (beta88 (fun _ => 0) 0 n a * F l a)))
      by (intros a _ N; apply Nat.eqb_neq in N; rewrite N; ring).
    rewrite (Others_ext K n (fun a => (if Nat.eqb a n then _ else - beta88_printed _ _ n a) * F l a)
      (fun a => - (beta88_printed (fun _ => 0) 0 n a * F l a)))
      by (intros a _ N; apply Nat.eqb_neq in N; rewrite N; ring).
    rewrite !Others_opp. lra. }
  specialize (U Same n' Ln'). cbv beta in U. apply Nat.eqb_neq in D. rewrite D in U.
  unfold beta88, beta88_printed in U.
  assert (q0 M < 0).
  { unfold q0. pose proof PM. unfold Rdiv. assert (0 < / (INR M - 1) ^ 2); [|nra].
    apply Rinv_0_lt_compat, pow_lt. lra. }
  lra.
Qed.
End Classes.
